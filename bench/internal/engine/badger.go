package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "badger",
			Title:  "log-structured merge tree with a value log, from Dgraph",
			Module: "github.com/dgraph-io/badger/v4",
			Cannot: map[Ability]string{
				CanProcesses: "refuses a reader beside a writer in another process",
			},
		},
		Settings: badgerSettings,
		Open:     openBadger,
	})
}

func badgerSettings(opts Options) []Setting {
	set := []Setting{
		{"Options.Logger = nil", "the default prints its life to stderr"},
		{"batch through WriteBatch", "the way its documentation gives for bulk writes; it limits a transaction (15 % of a memtable, 9.6 MiB, and 104,857 entries), so a greater set is several commits and not atomic"},
		{"IteratorOptions.PrefetchValues = false", "its documentation offers it for walks of keys; pairs and scans go without too, and each value is lent by Item.Value: the default starts a goroutine and makes a copy for each"},
	}
	if opts.Sync {
		set = append(set, Setting{"Options.SyncWrites = true", "sync on; the default is off"})
	}
	if opts.Memory > 0 {
		o := badgerOptions("", opts)
		set = append(set,
			Setting{fmt.Sprintf("Options.MemTableSize = %d, NumMemtables = %d", o.MemTableSize, o.NumMemtables), "half of the memory the workload allows: with the one in use and the one being written up to four memtables are held"},
			Setting{fmt.Sprintf("Options.BlockCacheSize = %d, IndexCacheSize = %d", o.BlockCacheSize, o.IndexCacheSize), "a quarter and an eighth of it"},
			Setting{fmt.Sprintf("Options.ValueThreshold = %d", o.ValueThreshold), "Badger refuses one above 15 % of a memtable"})
	}
	return set
}

func badgerOptions(dir string, opts Options) badger.Options {
	o := badger.DefaultOptions(dir).WithLogger(nil).WithSyncWrites(opts.Sync).WithReadOnly(opts.ReadOnly)
	if opts.Memory == 0 {
		return o
	}
	memtable := opts.Memory / 8
	return o.WithMemTableSize(memtable).WithNumMemtables(2).
		WithBlockCacheSize(opts.Memory / 4).WithIndexCacheSize(opts.Memory / 8).
		WithValueThreshold(min(o.ValueThreshold, memtable/10))
}

type badgerStore struct{ db *badger.DB }

func openBadger(dir string, opts Options) (Store, error) {
	db, err := badger.Open(badgerOptions(dir, opts))
	if err != nil && lockRefused(err, "Another process is using this Badger database") {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	return badgerStore{db}, nil
}

func (s badgerStore) Close() error { return s.db.Close() }

func (s badgerStore) Put(key, value []byte) error {
	return s.db.Update(func(tx *badger.Txn) error { return tx.Set(key, value) })
}

func (s badgerStore) Delete(key []byte) error {
	return s.db.Update(func(tx *badger.Txn) error { return tx.Delete(key) })
}

func (s badgerStore) Get(key []byte, see func([]byte) error) error {
	return s.View(func(r Reader) error { return r.Get(key, see) })
}

func (s badgerStore) PutBatch(pairs Pairs) (string, error) {
	b := s.db.NewWriteBatch()
	defer b.Cancel()
	var written, count int64
	for key, value := range pairs {
		written, count = written+int64(len(key)+len(value)), count+1
		if err := b.Set(key, value); err != nil {
			return "", err
		}
	}
	note := ""
	if written > s.db.MaxBatchSize() || count > s.db.MaxBatchCount() {
		note = "WriteBatch split the set into several transactions: not atomic"
	}
	return note, b.Flush()
}

func (s badgerStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *badger.Txn) error { return fn(badgerReader{tx}) })
}

func (s badgerStore) Keys(see func([]byte) error) error {
	return s.walk(nil, func(item *badger.Item) error { return see(item.Key()) })
}

func (s badgerStore) Pairs(see func(key, value []byte) error) error {
	return s.walkPairs(nil, see)
}

func (s badgerStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return ended(s.walkPairs(from, limited(n, see)))
}

// Settle waits until no level is over the size at which Badger compacts it.
func (s badgerStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) {
		for _, level := range s.db.Levels() {
			if level.Adjusted >= 1 {
				return false, nil
			}
		}
		return true, nil
	})
}

func (s badgerStore) walkPairs(from []byte, see func(key, value []byte) error) error {
	return s.walk(from, func(item *badger.Item) error {
		return item.Value(func(value []byte) error { return see(item.Key(), value) })
	})
}

func (s badgerStore) walk(from []byte, step func(*badger.Item) error) error {
	opts := badger.DefaultIteratorOptions
	opts.PrefetchValues = false
	return s.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(opts)
		defer it.Close()
		for it.Seek(from); it.Valid(); it.Next() {
			if err := step(it.Item()); err != nil {
				return err
			}
		}
		return nil
	})
}

type badgerReader struct{ tx *badger.Txn }

func (r badgerReader) Get(key []byte, see func([]byte) error) error {
	item, err := r.tx.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return item.Value(see)
}
