package engine

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "bbolt",
			Title:  "B+tree in one memory-mapped file: the maintained Bolt",
			Module: "go.etcd.io/bbolt",
			Cannot: map[Ability]string{
				CanProcesses: "a reader in another process waits until the writer has closed the store",
				CanMemory:    "maps its file: how much of it is in memory is the kernel's affair",
				CanSettle:    "nothing runs in the background",
			},
		},
		Settings: bboltSettings,
		Open:     openBbolt,
	})
}

// shares reports whether several goroutines put at once and each waits for a sync, which is
// what DB.Batch is for.
func shares(opts Options) bool { return opts.Sync && opts.Writers > 1 }

func bboltSettings(opts Options) []Setting {
	set := []Setting{
		{"Options.Timeout = 30 s", "to open; the default waits for ever for another process's lock"},
		{"Options.FreelistType = FreelistMapType", "its documentation calls it faster in almost all circumstances, and is to make it the default"},
		{"Options.NoFreelistSync = true", "its documentation says that it improves the performance of writes, and etcd sets it: the default writes the list of all free pages with every commit. Its price is that opening the store reads all its pages to find the free ones. Bolt has no such option"},
	}
	if !opts.Sync {
		set = append(set, Setting{"DB.NoSync = true, NoGrowSync = true", "sync off; the default syncs every commit, and the file within it whenever it grows. Making the file is synced all the same"})
	}
	if shares(opts) {
		set = append(set, Setting{fmt.Sprintf("DB.Batch for puts, MaxBatchSize = %d", opts.Writers),
			"its README says to, for several goroutines: their puts share a commit. As many as there are goroutines, for no more can come; the default waits 10 ms for 1,000. With one goroutine, and for all else, DB.Update"})
	}
	return set
}

var bboltBucket = []byte("bench")

type bboltStore struct {
	db  *bbolt.DB
	put func(func(*bbolt.Tx) error) error // Update, or Batch where several goroutines put
}

func openBbolt(dir string, opts Options) (Store, error) {
	how := *bbolt.DefaultOptions
	how.Timeout, how.ReadOnly, how.FreelistType = patience, opts.ReadOnly, bbolt.FreelistMapType
	how.NoFreelistSync, how.NoGrowSync = true, !opts.Sync
	db, err := bbolt.Open(filepath.Join(dir, "bbolt.db"), 0o600, &how)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	s := bboltStore{db, db.Update}
	if opts.ReadOnly {
		return s, nil
	}
	db.NoSync = !opts.Sync
	if shares(opts) {
		s.put, db.MaxBatchSize = db.Batch, opts.Writers
	}
	there := false // looked for first: Update is a commit with its syncs, whatever it does
	err = db.View(func(tx *bbolt.Tx) error { there = tx.Bucket(bboltBucket) != nil; return nil })
	if err == nil && !there {
		err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bboltBucket); return err })
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

func (s bboltStore) Close() error { return s.db.Close() }

func (s bboltStore) Put(key, value []byte) error {
	return s.put(func(tx *bbolt.Tx) error { return tx.Bucket(bboltBucket).Put(key, value) })
}

func (s bboltStore) Delete(key []byte) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bboltBucket).Delete(key) })
}

func (s bboltStore) Get(key []byte, see func([]byte) error) error {
	return s.View(func(r Reader) error { return r.Get(key, see) })
}

func (s bboltStore) PutBatch(pairs Pairs) (string, error) {
	return "", s.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bboltBucket)
		for key, value := range pairs {
			if err := b.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s bboltStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *bbolt.Tx) error { return fn(bboltReader{tx.Bucket(bboltBucket)}) })
}

func (s bboltStore) Keys(see func([]byte) error) error {
	return s.Pairs(func(key, _ []byte) error { return see(key) })
}

func (s bboltStore) Pairs(see func(key, value []byte) error) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bboltBucket).Cursor()
		for key, value := c.First(); key != nil; key, value = c.Next() {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s bboltStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	see = limited(n, see)
	return ended(s.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bboltBucket).Cursor()
		for key, value := c.Seek(from); key != nil; key, value = c.Next() {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

type bboltReader struct{ b *bbolt.Bucket }

func (r bboltReader) Get(key []byte, see func([]byte) error) error {
	value := r.b.Get(key)
	if value == nil {
		return ErrNotFound
	}
	return see(value)
}
