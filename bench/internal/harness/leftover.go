package harness

import (
	"os"
	"path/filepath"
)

// rootPrefix begins the names of data directories.
const rootPrefix = "cairn-bench-"

// ownerMark is a file in each data directory, locked as long as the harness lives.
// The lock ends with the process, however that ends, so a mark that can be locked
// belongs to a harness that was killed.
const ownerMark = ".owner"

// makeRoot makes a data directory below dir, after removing those of harnesses that
// are gone. release gives the mark up before the directory is removed.
func makeRoot(dir string) (root string, release func(), err error) {
	removeLeftovers(dir)
	if root, err = os.MkdirTemp(dir, rootPrefix); err != nil {
		return "", nil, err
	}
	// The mark appears under its name only when it is locked already.
	unready := filepath.Join(root, ownerMark+".new")
	mark, err := os.OpenFile(unready, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if err = lockMark(mark); err == nil {
			err = os.Rename(unready, filepath.Join(root, ownerMark))
		}
	}
	if err != nil {
		mark.Close()
		os.RemoveAll(root)
		return "", nil, err
	}
	return root, func() { mark.Close() }, nil
}

// removeLeftovers removes what harnesses left that could not clean up. What has no
// mark is not known to be ours and stays.
func removeLeftovers(dir string) {
	marks, _ := filepath.Glob(filepath.Join(dir, rootPrefix+"*", ownerMark))
	for _, name := range marks {
		mark, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lockMark(mark) == nil {
			_ = os.RemoveAll(filepath.Dir(name))
		}
		mark.Close()
	}
}
