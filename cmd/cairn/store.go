package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/directory"
)

// waitPause is how often --wait tries again.
const waitPause = 50 * time.Millisecond

// place is a directory: its name as it was given, and where that leads to. Everything is done there:
// a link in the name may lead elsewhere a moment later.
type place struct{ name, at string }

// locate finds the directory, which need not be there.
func locate(name string) (place, error) {
	if err := inTheWay(name); err != nil {
		return place{}, err
	}
	at, err := directory.Resolve(name)
	return place{name, at}, err
}

// read opens the store read-only for fn.
func (a *app) read(ctx context.Context, dir string, fn func(db *cairn.DB) error) error {
	p, err := locate(dir)
	if err != nil {
		return err
	}
	return a.readWith(ctx, p, &cairn.Options{}, fn)
}

func (a *app) readWith(ctx context.Context, p place, opts *cairn.Options, fn func(db *cairn.DB) error) error {
	if what, err := look(p); err != nil || what == nothing {
		return noStore(p, err)
	}
	opts.ReadOnly = true
	return a.with(ctx, p, opts, false, fn)
}

// write opens the store for writing for fn. A store that is not there is made
// only if create says so. A signal that comes before fn begins ends it without; one
// that comes later is heeded when all is done.
func (a *app) write(ctx context.Context, dir string, create, relaxed bool, fn func(db *cairn.DB) error) error {
	p, err := locate(dir)
	if err != nil {
		return err
	}
	what, err := look(p)
	switch {
	case err != nil && create:
	case err != nil:
		err = noStore(p, err)
	case what != store && create:
		err = a.mayCreate(ctx, p)
	case what == remains: // to open it for writing might make a store of it
		err = a.readWith(ctx, p, &cairn.Options{}, func(*cairn.DB) error { return nil })
	case what == nothing:
		err = noStore(p, nil)
	}
	if err != nil {
		return err
	}
	if !a.writing.TryLock() {
		return ctx.Err() // a signal has come, and the process is about to end
	}
	defer a.writing.Unlock()
	opts := &cairn.Options{}
	if relaxed {
		opts.Durability = cairn.Relaxed
	}
	err = a.with(ctx, p, opts, create, func(db *cairn.DB) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fn(db)
	})
	a.written = err == nil
	if err == nil && ctx.Err() != nil {
		return errInterruptedAfter
	}
	return err
}

// with opens the store, which is made if it is not there and create says so, runs fn and
// closes the store.
func (a *app) with(ctx context.Context, p place, opts *cairn.Options, create bool, fn func(db *cairn.DB) error) error {
	m := a.meter("recovering")
	opts.OnEvent = func(e cairn.Event) {
		if e.Kind == cairn.EventRecovery {
			m.set(e.Done, e.Total)
		}
	}
	db, err := a.open(ctx, p.at, opts)
	m.clear()
	switch {
	case err != nil && create:
		return err
	case err != nil:
		return noStore(p, err)
	}
	a.warnOfDropped(p.name, db.Stats().Recovery)
	err = fn(db)
	closed := db.Close()
	if err == nil && closed != nil && !opts.ReadOnly {
		return &closeError{closed, opts.Durability == cairn.Relaxed}
	}
	return errors.Join(err, closed)
}

// open is cairn.Open with a wait for the lock that a signal can end.
func (a *app) open(ctx context.Context, dir string, opts *cairn.Options) (*cairn.DB, error) {
	deadline := time.Now().Add(a.wait)
	for {
		a.opening = time.Now()
		db, err := cairn.Open(dir, opts)
		if !errors.Is(err, cairn.ErrLocked) || !time.Now().Before(deadline) {
			return db, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(min(waitPause, time.Until(deadline))):
		}
	}
}

// found is what a directory holds.
type found uint8

const (
	nothing found = iota // no directory, or nothing that belongs to a store
	remains              // files of a store, but not the one that makes it a store
	store
)

// look tells a store from other directories without opening it: opening makes a
// lock file, and writing a store, where there was nothing.
func look(p place) (found, error) {
	names, err := list(p.at)
	if err != nil {
		return nothing, err
	}
	what := nothing
	for _, name := range names {
		switch t, _ := base.ParseFileName(name); t {
		case base.FileCurrent:
			return store, nil
		case base.FileTable, base.FileLog, base.FileManifest:
			what = remains
		}
	}
	return what, nil
}

// list returns the names in dir; a directory that is not there has none.
func list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// inTheWay refuses a name that leads to no directory, or through something that
// is none; what is not there at all is in nobody's way. The system says where names lead to:
// what is behind a link and up again is not where it seems.
func inTheWay(dir string) error {
	const separators = "/" + string(filepath.Separator)
	given := strings.TrimRight(dir, separators)
	for p, name := given, dir; name != ""; {
		info, err := os.Stat(p)
		switch {
		case err == nil && info.IsDir():
			return nil
		case err == nil && p == given:
			return fmt.Errorf("%s: not a directory; a store is a directory", dir)
		case err == nil:
			return fmt.Errorf("%s: %s is not a directory; a store is a directory", dir, p)
		}
		if info, at := os.Lstat(p); at == nil && info.Mode()&fs.ModeSymlink != 0 { // else somebody has made it since
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %s is a link that leads nowhere", dir, p)
			}
			return fmt.Errorf("%s: %w", dir, err)
		}
		p, name = filepath.Split(p)
		p = strings.TrimRight(p, separators)
	}
	return nil
}

// noStore says what is missing if err is nil or says only that something is.
func noStore(p place, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) && !errors.Is(err, cairn.ErrCorrupt) {
		return fmt.Errorf("there is no store in %s (put --create makes one)", p.name)
	}
	return err
}
