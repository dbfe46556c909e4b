package directory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const separator = string(filepath.Separator)

// Resolve returns where dir leads to now on the operating system's file system: later the
// process may change its own directory, or somebody a symbolic link, and the store must
// stay in its own. A name is not cleaned before its links are resolved: link/../data is
// beside what the link leads to. Windows cleans names itself.
func Resolve(dir string) (string, error) {
	at, rest := absolute(dir), "" // rest is not there yet
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		at = strings.TrimRight(at, separator)
		if !mayBeMade(at, rest, err) {
			if _, named := os.Stat(dir); named != nil { // says what of which name
				err = named
			}
			return "", wrap(err, "open store")
		}
		parent, name := filepath.Split(at)
		if name == "" {
			return filepath.Join(at+separator, rest), nil
		}
		at, rest = parent, filepath.Join(name, rest)
	}
}

// absolute returns dir behind the process's directory, if it begins there, and else as it is; on Windows cleaned.
func absolute(dir string) string {
	if runtime.GOOS == "windows" {
		if abs, err := filepath.Abs(dir); err == nil {
			return abs
		}
	} else if wd, err := os.Getwd(); err == nil && !filepath.IsAbs(dir) {
		return wd + separator + dir
	}
	return dir
}

// mayBeMade reports whether at, which err keeps from being resolved, is not there: rest is then below
// what can be resolved. Nothing is beside what a link does not lead to.
func mayBeMade(at, rest string, err error) bool {
	if runtime.GOOS == "windows" { // where there are directories whose links cannot be read
		return true
	}
	_, missing := os.Lstat(at)
	return errors.Is(err, fs.ErrNotExist) && (missing != nil || !strings.HasPrefix(rest+separator, ".."+separator))
}
