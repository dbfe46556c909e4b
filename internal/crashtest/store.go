package crashtest

import (
	"context"
	"errors"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/vfs"
)

// Dir is the directory of the store in every file system here.
const Dir = "/db"

// memory is small so that segments are small and everything happens often.
const memory = engine.MinMemory

// rootPrefix is the prefix of the root bucket's keys.
var rootPrefix = base.AppendBucketPrefix(nil, 0)

// Store is a store as workloads use it.
type Store struct{ e *engine.Engine }

// Open opens the store in Dir.
func Open(fsys vfs.FS, relaxed bool) (*Store, error) {
	return open(engine.Config{FS: fsys, Relaxed: relaxed})
}

// OpenReadOnly opens the store in Dir for reading.
func OpenReadOnly(fsys vfs.FS) (*Store, error) {
	return open(engine.Config{FS: fsys, ReadOnly: true})
}

func open(c engine.Config) (*Store, error) {
	c.Dir, c.SyncInterval, c.Memory = Dir, time.Hour, memory
	e, err := engine.Open(c)
	if err != nil {
		return nil, err
	}
	return &Store{e}, nil
}

// Pair is a key with its value.
type Pair struct{ Key, Value string }

// Contents returns everything in the store, in order of keys.
func (s *Store) Contents() (pairs []Pair, err error) {
	tx, err := s.e.Begin(false)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	it := tx.NewIter(rootPrefix, base.PrefixEnd(rootPrefix))
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, Pair{string(it.Key()[len(rootPrefix):]), string(v)})
	}
	return pairs, it.Err()
}

// Backward returns everything in the store, in descending order of keys.
func (s *Store) Backward() (pairs []Pair, err error) {
	tx, err := s.e.Begin(false)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	it := tx.NewIter(rootPrefix, base.PrefixEnd(rootPrefix))
	defer it.Close()
	for ok := it.Last(); ok; ok = it.Prev() {
		v, err := it.Value()
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, Pair{string(it.Key()[len(rootPrefix):]), string(v)})
	}
	return pairs, it.Err()
}

// Get returns the value of key.
func (s *Store) Get(key string) (string, bool, error) {
	v, err := s.e.GetTo(rootPrefix, []byte(key), nil)
	if errors.Is(err, base.ErrNotFound) {
		return "", false, nil
	}
	return string(v), err == nil, err
}

// Commit makes ops one commit and returns its sequence.
func (s *Store) Commit(ops []Op, durable bool) (uint64, error) {
	tx, err := s.e.Begin(true)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	tx.SetDurable(durable)
	for _, op := range ops {
		if err := op.do(tx); err != nil {
			return 0, err
		}
	}
	return tx.Commit()
}

func internal(key string) []byte { return append(append([]byte(nil), rootPrefix...), key...) }

func (op *Op) do(tx *engine.Tx) error {
	switch op.Kind {
	case base.KindDelete:
		return tx.Delete(internal(op.Key))
	case base.KindRangeDelete:
		return tx.DeleteRange(internal(op.Key), internal(op.Value))
	}
	return tx.Put(internal(op.Key), []byte(op.Value))
}

// Sync makes acknowledged commits durable.
func (s *Store) Sync() error { return s.e.Sync() }

// Compact flushes, and merges what lies in [low, high) of keys.
func (s *Store) Compact(low, high string) error {
	return s.e.Compact(context.Background(), internal(low), internal(high))
}

// Verify reads every table.
func (s *Store) Verify() error {
	_, err := s.e.Verify(context.Background(), nil)
	return err
}

// Dropped returns the bytes that Open reported as dropped.
func (s *Store) Dropped() int64 { return s.e.Stats().Recovery.DroppedBytes }

// Tables returns the number of tables.
func (s *Store) Tables() int { return s.e.Stats().Tables }

// Close closes the store.
func (s *Store) Close() error { return s.e.Close() }
