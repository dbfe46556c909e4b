package engine

import (
	"bytes"
	"errors"

	"github.com/nutsdb/nutsdb"
)

// v1.1.0: v2.0.0 is tagged, but the module proxy gave it under neither path (2026-11).
func init() {
	Register(Driver{
		Info: Info{
			Name:   "nutsdb",
			Title:  "log with keys and values indexed in RAM (HintKeyValAndRAMIdxMode)",
			Module: "github.com/nutsdb/nutsdb",
			Cannot: nutsdbCannot,
		},
		Settings: nutsdbSettings,
		Open:     openNutsdb,
	})
}

// nutsdbCannot is the same in every index mode.
var nutsdbCannot = map[Ability]string{
	CanProcesses: "refuses to open beside another process, and has no read-only mode",
	CanMemory:    "keeps its index in memory and has no bound for it",
	CanSettle:    "nothing runs in the background but a merge every two hours",
}

func nutsdbSettings(opts Options) []Setting {
	set := []Setting{{"keys and values are copied before Put",
		"a transaction keeps the slices it is given until it ends, and the index what it has of them, so a caller must give them away"}}
	if !opts.Sync {
		set = append(set, Setting{"Options.SyncEnable = false", "sync off; the default is on"})
	}
	return set
}

const nutsdbBucket = "bench"

type nutsdbStore struct{ db *nutsdb.DB }

func openNutsdb(dir string, opts Options) (Store, error) {
	return openNutsdbMode(dir, opts, nutsdb.HintKeyValAndRAMIdxMode)
}

func openNutsdbMode(dir string, opts Options, mode nutsdb.EntryIdxMode) (Store, error) {
	o := nutsdb.DefaultOptions
	o.Dir = dir
	o.EntryIdxMode = mode
	o.SyncEnable = opts.Sync
	db, err := nutsdb.Open(o)
	if errors.Is(err, nutsdb.ErrDirLocked) {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *nutsdb.Tx) error {
		return tx.NewBucket(nutsdb.DataStructureBTree, nutsdbBucket)
	})
	if err != nil && !errors.Is(err, nutsdb.ErrBucketAlreadyExist) {
		db.Close()
		return nil, err
	}
	return nutsdbStore{db}, nil
}

func (s nutsdbStore) Close() error { return s.db.Close() }

func (s nutsdbStore) Put(key, value []byte) error {
	return s.db.Update(func(tx *nutsdb.Tx) error { return nutsdbPut(tx, key, value) })
}

func nutsdbPut(tx *nutsdb.Tx, key, value []byte) error {
	return tx.Put(nutsdbBucket, bytes.Clone(key), bytes.Clone(value), nutsdb.Persistent)
}

func (s nutsdbStore) Delete(key []byte) error {
	return s.db.Update(func(tx *nutsdb.Tx) error { return tx.Delete(nutsdbBucket, bytes.Clone(key)) })
}

func (s nutsdbStore) Get(key []byte, see func([]byte) error) error {
	return s.View(func(r Reader) error { return r.Get(key, see) })
}

func (s nutsdbStore) PutBatch(pairs Pairs) (string, error) {
	return "", s.db.Update(func(tx *nutsdb.Tx) error {
		for key, value := range pairs {
			if err := nutsdbPut(tx, key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s nutsdbStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *nutsdb.Tx) error { return fn(nutsdbReader{tx}) })
}

func (s nutsdbStore) Keys(see func([]byte) error) error {
	return s.walk(nil, func(it *nutsdb.Iterator) error { return see(it.Key()) })
}

func (s nutsdbStore) Pairs(see func(key, value []byte) error) error {
	return s.walkPairs(nil, see)
}

func (s nutsdbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return ended(s.walkPairs(from, limited(n, see)))
}

func (s nutsdbStore) walkPairs(from []byte, see func(key, value []byte) error) error {
	return s.walk(from, func(it *nutsdb.Iterator) error {
		value, err := it.Value()
		if err != nil {
			return err
		}
		return see(it.Key(), value)
	})
}

// walk visits what is not below from; nil is everything.
func (s nutsdbStore) walk(from []byte, step func(*nutsdb.Iterator) error) error {
	return s.db.View(func(tx *nutsdb.Tx) error {
		it := nutsdb.NewIterator(tx, nutsdbBucket, nutsdb.IteratorOptions{})
		defer it.Release()
		ok := it.Valid()
		if from != nil {
			ok = it.Seek(from)
		}
		for ; ok; ok = it.Next() {
			if err := step(it); err != nil {
				return err
			}
		}
		return nil
	})
}

type nutsdbReader struct{ tx *nutsdb.Tx }

func (r nutsdbReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.tx.Get(nutsdbBucket, key)
	if errors.Is(err, nutsdb.ErrKeyNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return see(value)
}
