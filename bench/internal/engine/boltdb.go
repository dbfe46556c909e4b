package engine

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/boltdb/bolt"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "boltdb",
			Title:  "B+tree in one memory-mapped file (archived 2018)",
			Module: "github.com/boltdb/bolt",
			Cannot: map[Ability]string{
				CanProcesses: "a reader in another process waits until the writer has closed the store",
				CanMemory:    "maps its file: how much of it is in memory is the kernel's affair",
				CanSettle:    "nothing runs in the background",
			},
		},
		Settings: boltdbSettings,
		Open:     openBoltdb,
	})
}

func boltdbSettings(opts Options) []Setting {
	set := []Setting{{"Options.Timeout = 30 s", "to open; the default waits for ever for another process's lock"}}
	if !opts.Sync {
		set = append(set, Setting{"DB.NoSync = true, NoGrowSync = true", "sync off; the default syncs every commit, and the file within it whenever it grows. Making the file is synced all the same"})
	}
	if shares(opts) {
		set = append(set, Setting{fmt.Sprintf("DB.Batch for puts, MaxBatchSize = %d", opts.Writers),
			"its README says to, for several goroutines: their puts share a commit. As many as there are goroutines, for no more can come; the default waits 10 ms for 1,000. With one goroutine, and for all else, DB.Update"})
	}
	return set
}

var boltdbBucket = []byte("bench")

type boltdbStore struct {
	db  *bolt.DB
	put func(func(*bolt.Tx) error) error // Update, or Batch where several goroutines put
}

func openBoltdb(dir string, opts Options) (Store, error) {
	how := *bolt.DefaultOptions
	how.Timeout, how.ReadOnly, how.NoGrowSync = patience, opts.ReadOnly, !opts.Sync
	db, err := bolt.Open(filepath.Join(dir, "bolt.db"), 0o600, &how)
	if errors.Is(err, bolt.ErrTimeout) {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	s := boltdbStore{db, db.Update}
	if opts.ReadOnly {
		return s, nil
	}
	db.NoSync = !opts.Sync
	if shares(opts) {
		s.put, db.MaxBatchSize = db.Batch, opts.Writers
	}
	there := false // looked for first: Update is a commit with its syncs, whatever it does
	err = db.View(func(tx *bolt.Tx) error { there = tx.Bucket(boltdbBucket) != nil; return nil })
	if err == nil && !there {
		err = db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket(boltdbBucket); return err })
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

func (s boltdbStore) Close() error { return s.db.Close() }

func (s boltdbStore) Put(key, value []byte) error {
	return s.put(func(tx *bolt.Tx) error { return tx.Bucket(boltdbBucket).Put(key, value) })
}

func (s boltdbStore) Delete(key []byte) error {
	return s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(boltdbBucket).Delete(key) })
}

func (s boltdbStore) Get(key []byte, see func([]byte) error) error {
	return s.View(func(r Reader) error { return r.Get(key, see) })
}

func (s boltdbStore) PutBatch(pairs Pairs) (string, error) {
	return "", s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(boltdbBucket)
		for key, value := range pairs {
			if err := b.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s boltdbStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *bolt.Tx) error { return fn(boltdbReader{tx.Bucket(boltdbBucket)}) })
}

func (s boltdbStore) Keys(see func([]byte) error) error {
	return s.Pairs(func(key, _ []byte) error { return see(key) })
}

func (s boltdbStore) Pairs(see func(key, value []byte) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(boltdbBucket).Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s boltdbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	see = limited(n, see)
	return ended(s.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(boltdbBucket).Cursor()
		for key, value := c.Seek(from); key != nil; key, value = c.Next() {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

type boltdbReader struct{ b *bolt.Bucket }

func (r boltdbReader) Get(key []byte, see func([]byte) error) error {
	value := r.b.Get(key)
	if value == nil {
		return ErrNotFound
	}
	return see(value)
}
