package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// prefix begins the names of the directories.
const prefix = "cairn-bench-"

// mark is the locked file. It appears under its name only when it is locked already;
// before, it has the other.
const (
	mark    = ".owner"
	newMark = ".owner.new"
)

// unlockedFor is how old a mark must be whose owner has not come to lock it.
const unlockedFor = time.Minute

// Make makes a directory below dir, after removing those of owners that are gone.
// release gives the mark up before the directory is removed.
func Make(dir string) (root string, release func(), err error) {
	removeLeftovers(dir)
	if root, err = os.MkdirTemp(dir, prefix); err != nil {
		return "", nil, err
	}
	unready := filepath.Join(root, newMark)
	file, err := os.OpenFile(unready, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		if err = lock(file); err == nil {
			err = os.Rename(unready, filepath.Join(root, mark))
		}
	}
	if err != nil {
		file.Close()
		os.RemoveAll(root)
		return "", nil, err
	}
	return root, func() { file.Close() }, nil
}

// removeLeftovers removes what owners left that could not clean up.
func removeLeftovers(dir string) {
	marks, _ := filepath.Glob(filepath.Join(dir, prefix+"*", mark))
	for _, name := range marks {
		removeUnowned(name)
	}
	unready, _ := filepath.Glob(filepath.Join(dir, prefix+"*", newMark))
	for _, name := range unready {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > unlockedFor {
			removeUnowned(name)
		}
	}
	all, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, name := range all {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > unlockedFor {
			_ = os.Remove(name) // only if it is empty: killed before there was a mark
		}
	}
}

// removeUnowned removes the directory of a mark that nobody has locked.
func removeUnowned(name string) {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return
	}
	unowned := lock(file) == nil
	file.Close()
	if unowned {
		Remove(filepath.Dir(name))
	}
}

// Remove removes a directory into which this very process, or one that is just being
// killed, may still be writing. The mark goes last: if this process is killed in the
// middle, the next one knows the rest by it.
func Remove(dir string) {
	for range 50 {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.Name() != mark {
				_ = os.RemoveAll(filepath.Join(dir, e.Name()))
			}
		}
		_ = os.RemoveAll(dir)
		if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
