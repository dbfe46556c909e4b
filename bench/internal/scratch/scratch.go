package scratch

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// prefix begins the names of the directories; digits follow. Nobody else gives files such names.
const prefix = "cairn-bench-tmp-"

// mark is the locked file. It appears under its name only when it is locked already and
// says what it is; before, it has the other.
const (
	mark    = ".owner"
	newMark = ".owner.new"
)

// about is what the mark says.
const about = "The directory of a run of cairn-bench; the next one removes it if its owner was killed.\n"

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
		err = sign(file)
	}
	if err == nil {
		err = os.Rename(unready, filepath.Join(root, mark))
	}
	if err != nil {
		file.Close()
		os.RemoveAll(root)
		return "", nil, err
	}
	return root, func() { file.Close() }, nil
}

// sign makes a new file a mark.
func sign(file *os.File) error {
	if err := lock(file); err != nil {
		return err
	}
	_, err := file.WriteString(about)
	return err
}

// removeLeftovers removes what owners left that could not clean up: directories with names
// that Make gives and a mark that is its own. Whatever else has such a name stays.
func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		root := filepath.Join(dir, e.Name())
		if !named(e.Name()) || !is(root, fs.ModeDir) {
			continue
		}
		switch unready := filepath.Join(root, newMark); {
		case unowned(filepath.Join(root, mark), about):
			Remove(root)
		case old(unready) && alone(root) && unowned(unready, about, ""):
			Remove(root)
		case old(root):
			_ = os.Remove(root) // only if it is empty: killed before there was a mark
		}
	}
}

// named reports whether a name is one that Make gives.
func named(name string) bool {
	digits, ok := strings.CutPrefix(name, prefix)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// is reports whether path itself, not what it may link to, is of a type.
func is(path string, what fs.FileMode) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == what
}

func old(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && time.Since(info.ModTime()) > unlockedFor
}

// alone reports whether a directory holds one thing.
func alone(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 1
}

// unowned reports whether a file is a mark, which says one of these, that nobody has locked.
func unowned(name string, says ...string) bool {
	if !is(name, 0) {
		return false
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	if lock(file) != nil {
		return false
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(len(about))+1))
	return err == nil && slices.Contains(says, string(text))
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
