package engine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// The floors write what an engine must at least write: the bytes of keys and values,
// by plain system calls. They have no index, so they cannot give anything back.
func init() {
	registerFloor("floor", "the same bytes appended to one file by plain system calls: no engine, cannot read", false)
	registerFloor("floor-prealloc", "the same into a file whose blocks were written with zeros before: no metadata to sync", true)
}

func registerFloor(name, title string, ahead bool) {
	Register(Driver{
		Info: Info{Name: name, Title: title, Floor: true, Cannot: map[Ability]string{
			CanGet:       "a floor only writes",
			CanOrder:     "a floor only writes",
			CanView:      "a floor only writes",
			CanKeys:      "a floor only writes",
			CanPairs:     "a floor only writes",
			CanScan:      "a floor only writes",
			CanProcesses: "a floor only writes",
			CanMemory:    "a floor has no caches",
			CanSettle:    "a floor has no background work",
		}},
		Settings: func(opts Options) []Setting { return floorSettings(opts, ahead) },
		Open: func(dir string, opts Options) (Store, error) {
			f, err := os.OpenFile(filepath.Join(dir, floorName), os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				return nil, err
			}
			s := &floorStore{file: f, sync: opts.Sync, ahead: ahead}
			return s, s.extend(0)
		},
	})
}

func floorSettings(opts Options, ahead bool) []Setting {
	var set []Setting
	if opts.Sync {
		set = append(set, Setting{"fdatasync after each commit", "sync on; concurrent puts share one write and one sync (elsewhere than on Linux: fsync)"})
	}
	if ahead {
		set = append(set, Setting{"zeros are written 8 MiB ahead", "inside the time of the put that needs them; cut off at close"})
	}
	return set
}

const (
	floorName  = "floor"
	floorAhead = 8 << 20
	floorPiece = 1 << 20 // of a batch, in one write
)

// floorStore writes records end to end. Puts wait in pending while another goroutine
// writes; whoever comes next writes and syncs for all of them.
type floorStore struct {
	file  *os.File
	sync  bool
	ahead bool

	mu      sync.Mutex // of pending and turn
	pending []byte
	turn    int // of the puts in pending

	writing sync.Mutex // of what follows
	done    int        // turns written
	at      int64      // end of the records
	room    int64      // end of the zeros
	spare   []byte
	failed  error
}

func (s *floorStore) Put(key, value []byte) error {
	s.mu.Lock()
	s.pending = append(append(s.pending, key...), value...)
	mine := s.turn
	s.mu.Unlock()
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.done > mine || s.failed != nil {
		return s.failed
	}
	s.mu.Lock()
	records := s.pending
	s.pending, s.turn = s.spare[:0], s.turn+1
	s.done = s.turn
	s.mu.Unlock()
	s.spare = records
	s.failed = s.write(records, true)
	return s.failed
}

func (s *floorStore) PutBatch(pairs Pairs) (string, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	records := make([]byte, 0, floorPiece+1<<16)
	for key, value := range pairs {
		records = append(append(records, key...), value...)
		if len(records) >= floorPiece {
			if err := s.write(records, false); err != nil {
				return "", err
			}
			records = records[:0]
		}
	}
	return "", s.write(records, true)
}

// write appends and, at the end of a commit, syncs where that is asked for.
func (s *floorStore) write(records []byte, commit bool) error {
	if err := s.extend(int64(len(records))); err != nil {
		return err
	}
	if _, err := s.file.WriteAt(records, s.at); err != nil {
		return err
	}
	s.at += int64(len(records))
	if commit && s.sync {
		return DataSync(s.file)
	}
	return nil
}

// extend writes zeros ahead of the records, if this floor does so.
func (s *floorStore) extend(more int64) error {
	for s.ahead && s.at+more >= s.room {
		if _, err := s.file.WriteAt(make([]byte, floorAhead), s.room); err != nil {
			return err
		}
		s.room += floorAhead
		if s.sync {
			if err := s.file.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

var errFloor = errors.New("a floor only writes")

func (s *floorStore) Get([]byte, func([]byte) error) error { return errFloor }

func (s *floorStore) Delete([]byte) error { return errFloor }

func (s *floorStore) Close() error {
	return errors.Join(s.file.Truncate(s.at), s.file.Close())
}

// FloorRecords opens what a closed floor has written: keys and values end to end.
func FloorRecords(dir string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(dir, floorName))
}
