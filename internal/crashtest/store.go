package crashtest

import (
	"context"
	"errors"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Dir is the directory of the store in every file system here. Its parent is made by Open as well.
const Dir = "/var/db"

// memory is small so that segments are small and everything happens often.
const memory = 1 << 20

// Frames go ahead of their commits here that would be too short for it elsewhere, and are stored in a mapping of the log,
// where there are maps, though they are synced.
func init() { wal.AheadBytes, tree.LongCommit = 8<<10, 8<<10 }

// Store is a store as workloads use it.
type Store struct{ db *cairn.DB }

// Open opens the store in Dir.
func Open(fsys vfs.FS, relaxed bool) (*Store, error) { return openAs(fsys, optionsOf(relaxed)) }

func optionsOf(relaxed bool) (o cairn.Options) {
	if relaxed {
		o.Durability = cairn.Relaxed
	}
	return o
}

// openAs opens the store in Dir with options; what they leave open is as usual here.
func openAs(fsys vfs.FS, o cairn.Options) (*Store, error) {
	o.FS = fsys
	return open(&o)
}

// OpenReadOnly opens the store in Dir for reading.
func OpenReadOnly(fsys vfs.FS) (*Store, error) {
	return open(&cairn.Options{FS: fsys, ReadOnly: true})
}

func open(o *cairn.Options) (*Store, error) {
	if o.Memory == 0 {
		o.Memory = memory
	}
	if o.SyncInterval == 0 {
		o.SyncInterval = time.Hour
	}
	db, err := cairn.Open(Dir, o)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// Pair is a key with its value.
type Pair struct{ Key, Value string }

// Contents returns everything in the store, in order of keys.
func (s *Store) Contents() (pairs []Pair, err error) {
	err = s.db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			pairs = append(pairs, Pair{string(k), string(v)})
		}
		return nil
	})
	return pairs, err
}

// Walk scans everything in the store, and keeps nothing of it.
func (s *Store) Walk() error {
	return s.db.View(func(tx *cairn.Tx) error {
		for range tx.Scan(cairn.Range{}) {
		}
		return nil
	})
}

// Backward returns everything in the store, in descending order of keys.
func (s *Store) Backward() (pairs []Pair, err error) {
	err = s.db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.ScanBackward(cairn.Range{}) {
			pairs = append(pairs, Pair{string(k), string(v)})
		}
		return nil
	})
	return pairs, err
}

// Get returns the value of key.
func (s *Store) Get(key string) (string, bool, error) {
	v, err := s.db.Get([]byte(key))
	if errors.Is(err, cairn.ErrNotFound) {
		return "", false, nil
	}
	return string(v), err == nil, err
}

// Commit makes ops one commit and returns its sequence.
func (s *Store) Commit(ops []Op, durable bool) (uint64, error) {
	tx, err := s.db.Begin(true)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if durable {
		tx.SetDurability(cairn.Durable)
	} else {
		tx.SetDurability(cairn.Relaxed)
	}
	for _, op := range ops {
		if err := op.do(tx); err != nil {
			return 0, err
		}
	}
	err = tx.Commit()
	return tx.CommitSeq(), err
}

func (op *Op) do(tx *cairn.Tx) error {
	switch op.Kind {
	case base.KindDelete:
		return tx.Delete([]byte(op.Key))
	case base.KindRangeDelete:
		return tx.DeleteRange(cairn.Range{Low: []byte(op.Key), High: []byte(op.Value)})
	}
	return tx.Put([]byte(op.Key), []byte(op.Value))
}

// Sync makes acknowledged commits durable.
func (s *Store) Sync() error { return s.db.Sync() }

// Compact flushes, and merges what lies in [low, high) of keys.
func (s *Store) Compact(low, high string) error {
	return s.db.Compact(context.Background(), cairn.Range{Low: []byte(low), High: []byte(high)})
}

// Rest waits until background work has nothing to do, or cannot do it.
func (s *Store) Rest() {
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if stats := s.db.Stats(); stats.CompactionDebt == 0 || stats.BackgroundError != nil {
			return
		}
	}
}

// Verify reads every table.
func (s *Store) Verify() error {
	_, err := s.db.Verify(context.Background())
	return err
}

// LogBytes returns how much is in the log and not in tables.
func (s *Store) LogBytes() int64 { return s.db.Stats().LogBytes }

// Dropped returns the bytes that Open reported as dropped.
func (s *Store) Dropped() int64 { return s.db.Stats().Recovery.DroppedBytes }

// Close closes the store.
func (s *Store) Close() error { return s.db.Close() }
