package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// mayCreate refuses to make a store in a directory that holds anything: opening a
// store removes what by its name could be left over from one. Let through are only
// the files an interrupted creation leaves, known by name and by content.
func (a *app) mayCreate(ctx context.Context, p place) error {
	names, err := list(p.at)
	if err != nil {
		return err
	}
	name, err := foreign(p.at, names)
	if err != nil || name == "" {
		return err
	}
	if t, _ := base.ParseFileName(name); t != base.FileUnknown {
		// Another process may have made the store meanwhile, or this is a store
		// that has lost the file CURRENT: the engine can tell.
		if what, err := look(p); err != nil || what == store {
			return err
		}
		err := a.readWith(ctx, p, &cairn.Options{}, func(*cairn.DB) error { return nil })
		if err == nil || errors.Is(err, cairn.ErrCorrupt) || errors.Is(err, cairn.ErrLocked) || errors.Is(err, context.Canceled) {
			return err
		}
	}
	return fmt.Errorf("no store made in %s: it holds %s; choose a directory that is empty or not there yet",
		p.name, filepath.Join(p.at, name))
}

// foreign returns the first of the names that no interrupted creation of a store
// leaves, "" if there is none. Creations number a log segment, the empty file of a table
// and a manifest from 1 on, each beginning behind what it finds, and a temporary file like
// its manifest, whose own name may not have reached the disk.
func foreign(dir string, names []string) (string, error) {
	manifests := map[uint64]bool{}
	numbered := uint64(0)
	for _, name := range names {
		switch t, num := base.ParseFileName(name); t {
		case base.FileUnknown:
			return name, nil
		case base.FileManifest:
			manifests[num] = true
			numbered++
		case base.FileLog, base.FileTable:
			numbered++
		}
	}
	for _, name := range names {
		t, num := base.ParseFileName(name)
		switch t {
		case base.FileLock:
		case base.FileManifest, base.FileLog, base.FileTable:
			if num == 0 || num > 3*numbered { // the others' names may not have reached the disk
				return name, nil
			}
		case base.FileTemp:
			if !manifests[num] && (num == 0 || num > 3*numbered) {
				return name, nil
			}
		default:
			return name, nil
		}
		ok, err := unfinished(filepath.Join(dir, name), t, num)
		if err != nil || !ok {
			return name, err
		}
	}
	return "", nil
}

// maxUnfinished is more than the first manifest of a store has, or its lock file, and
// maxFirstLog the size of the first log segment.
const (
	maxUnfinished = 4096
	maxFirstLog   = 1 << 20
)

// holder is what a lock file says, in its first part, of the process that holds it, or was killed.
var holder = regexp.MustCompile(`^([0-9]+ [!-~]+ [!-~]+\n)?$`)

// Lengths of a lock file, and of what it says of its holder; behind that is memory that processes share.
const (
	lockBytes   = 512
	holderBytes = lockBytes - vfs.SharedBytes
)

// readAtMost returns what a file begins with. The engine's way to open files lets others remove and replace
// them meanwhile, on Windows too.
func readAtMost(path string, most int64) ([]byte, error) {
	f, err := vfs.OS().Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, 0, most))
}

// unfinished reports whether a file holds what an interrupted creation leaves:
// nothing, because its bytes had not reached the disk, or what was to be there. A
// file that has gone meanwhile is none to worry about.
func unfinished(path string, t base.FileType, num uint64) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	most := int64(maxUnfinished)
	if t == base.FileLog {
		most = maxFirstLog
	}
	if t == base.FileTable {
		most = 0
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return false, err
	}
	b, err := readAtMost(path, most)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || len(bytes.Trim(b, "\x00")) == 0 {
		return err == nil, err
	}
	switch t {
	case base.FileLock:
		if len(b) == lockBytes {
			b = b[:holderBytes]
		}
		return holder.Match(bytes.TrimRight(b, "\x00")), nil
	case base.FileTemp: // it was to become CURRENT
		return bytes.HasPrefix(b, []byte("cairn ")), nil
	case base.FileManifest:
		h, err := base.DecodeFileHeader(b, t, path)
		return err == nil && h.Num == num, nil
	case base.FileLog: // its first frame is written when the store is there
		h, err := base.DecodeFileHeader(b, t, path)
		return err == nil && h.Num == num && len(bytes.Trim(b[base.FileHeaderBytes:], "\x00")) == 0, nil
	}
	return false, nil
}
