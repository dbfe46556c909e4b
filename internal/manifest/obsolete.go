package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Obsolete returns those of a directory's names that are garbage in state s:
// temporary files, manifests but the live one, tables and log segments s does not
// mention. Names that are not a store's are never among them, nor is a file for
// which keep, if not nil, returns true: one being made, or still being read.
//
// Whoever removes the result must hold the store's lock, and must do so only while
// the edits that made the files obsolete are sealed (Log.SealedThrough).
func Obsolete(names []string, s *State, keep func(t base.FileType, num uint64) bool) []string {
	type role struct {
		t   base.FileType
		num uint64
	}
	live := map[role]bool{{base.FileManifest, s.Manifest}: true}
	for _, seg := range s.Segments {
		live[role{base.FileLog, seg.Num}] = true
	}
	for _, t := range s.Version.Tables() {
		live[role{base.FileTable, t.Num}] = true
	}
	var garbage []string
	for _, name := range names {
		t, num := base.ParseFileName(name)
		if numbered(t) && !live[role{t, num}] && (keep == nil || !keep(t, num)) {
			garbage = append(garbage, name)
		}
	}
	return garbage
}

// EarlierNeeds returns what reports whether a file that s does not need may be needed by a state that
// Recover finds instead of it after a power cut: one of fewer edits or, as long as there is an earlier
// manifest among the directory's names, one of that, which CURRENT may name again (it is removed only when
// the name of the next one is durable). So those for which it is false can go without another sync. Of
// tables that only the log names it knows nothing. Only of Recover's states can it tell; of others it is
// always true.
func EarlierNeeds(names []string, s *State) func(t base.FileType, num uint64) bool {
	before := hasEarlier(names, s)
	return func(t base.FileType, num uint64) bool {
		switch t {
		case base.FileTemp, base.FileReserve:
			return false
		case base.FileManifest:
			return num < s.Manifest
		case base.FileTable:
			return s.gone == nil || s.gone[num] || before && num < s.firstNum
		}
		return true
	}
}

// Unconfirmed reports whether the name of the manifest whose state Recover found may be in the system's
// cache only: a recovery has made it, which may have ended, or failed, before CURRENT was durable (where
// edits follow the snapshot it was, before they were written), and the one before it is still among the
// directory's names. Only these count: that file may be one that cannot be looked at now.
func Unconfirmed(names []string, s *State) bool { return s.whole && hasEarlier(names, s) }

// hasEarlier reports whether an earlier manifest is among a directory's names.
func hasEarlier(names []string, s *State) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		t, num := base.ParseFileName(name)
		return t == base.FileManifest && num < s.Manifest
	})
}

// numbered reports whether files of type t come and go with their numbers.
func numbered(t base.FileType) bool {
	return t == base.FileLog || t == base.FileTable || t == base.FileManifest || t == base.FileTemp
}

// maxForeignNum: a number that is greater, and far from those the store has reached, is
// none that it has given out: something else has made the file, 20250131120000.log say. To
// go on behind that would leave no numbers for log segments.
const maxForeignNum = 1 << 31

// FirstFreeNum returns a number that neither the state, which may be nil, nor any
// file of the directory uses that may be the store's, and no number soon after it either.
// A directory can hold files beyond State.NextFileNum: a crash came before their edit.
func FirstFreeNum(names []string, s *State) uint64 {
	free := uint64(1)
	if s != nil {
		free = s.NextFileNum
	}
	most := max(maxForeignNum, free+1<<20)
	for _, name := range names {
		if t, num := base.ParseFileName(name); numbered(t) && num <= most {
			free = max(free, num+1)
		}
	}
	return free
}

// lostCurrent looks for evidence that a directory without CURRENT held a store: a
// table, or a log segment with more than a header, which are written only after CURRENT is durable.
// Without it, creation of the store was interrupted, and the result is nil.
func lostCurrent(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("manifest: list %s: %w", dir, err)
	}
	for _, name := range names {
		lost, err := outlivesCurrent(fsys, filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a link that leads nowhere: it says nothing of the others
		}
		if err != nil {
			return err
		}
		if lost {
			return base.Corruptf(base.FilePath(dir, base.FileCurrent, 0), -1, "missing, but %s is there", name)
		}
	}
	return nil
}

// outlivesCurrent reports whether a file proves that there was a CURRENT. The header of
// a segment proves nothing, whatever it is: it may have been on its way to the disk.
func outlivesCurrent(fsys vfs.FS, name string) (bool, error) {
	switch t, _ := base.ParseFileName(filepath.Base(name)); t {
	case base.FileTable:
		info, err := fsys.Stat(name)
		return info.Size > 0, err
	case base.FileLog:
		b, err := readFile(fsys, name, wal.MaxCapacity)
		frames := bytes.TrimLeft(b[min(len(b), base.FileHeaderBytes):], "\x00")
		return len(frames) > 0, err
	}
	return false, nil
}
