package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cairndb/cairn/bench/internal/result"
)

// place is a file that a run writes or reads, and the flag that names it.
type place struct{ flag, file string }

// places are the files that this run will write.
func (f *flags) places() []place {
	var all []place
	if f.json != "" {
		flag := "-json"
		if f.resume != "" {
			flag = "-continue"
		}
		all = append(all, place{flag, f.json})
	}
	if f.html != "" && f.html != noPage {
		all = append(all, place{"-html", f.html})
	}
	return all
}

// checkPlaces makes sure that what will be measured can be written to where it is to go,
// and over nothing else: to find out after hours of measuring would be late.
func (f *flags) checkPlaces() error {
	all := f.places()
	for _, p := range all {
		if err := writable(p.file); err != nil {
			return fmt.Errorf("%s %s: %w", p.flag, p.file, err)
		}
	}
	if f.data.Path != "" {
		all = append(all, place{"-data", f.data.Path})
	}
	for i, p := range all {
		for _, other := range all[:i] {
			if sameFile(p.file, other.file) {
				return fmt.Errorf("%s and %s name the same file, %s", other.flag, p.flag, p.file)
			}
		}
	}
	return nil
}

// writable says why a file cannot be replaced, by trying to make one beside it.
func writable(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return errors.New("a directory, not a file")
	}
	if special(name) {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || !info.IsDir() {
		return fmt.Errorf("no directory %s", filepath.Dir(name))
	}
	trial, err := beside(name, make([]byte, 4096)) // a full disk may still have room for a name
	if err == nil {
		err = os.Remove(trial)
	}
	return err
}

// sameFile reports whether two names are of one file, there or not. What is special takes
// all that is written to it.
func sameFile(a, b string) bool {
	if special(a) {
		return false
	}
	first, err := os.Stat(a)
	second, missing := os.Stat(b)
	if err == nil && missing == nil {
		return os.SameFile(first, second)
	}
	a, err = filepath.Abs(a)
	b, missing = filepath.Abs(b)
	return err == nil && missing == nil && a == b
}

// save writes what was measured to the files that were asked for, to each whether or not
// the others can be written.
func (f *flags) save(run *result.Run) error {
	var failed []error
	for _, p := range f.places() {
		write := writeJSON
		if p.flag == "-html" {
			write = writePage
		}
		if err := write(p.file, run); err != nil {
			failed = append(failed, fmt.Errorf("not saved to %s: %w", p.file, err))
		}
	}
	return errors.Join(failed...)
}
