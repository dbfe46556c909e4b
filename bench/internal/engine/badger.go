package engine

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "badger",
			Title:  "log-structured merge tree with a value log, from Dgraph",
			Module: "github.com/dgraph-io/badger/v4",
		},
		Settings: badgerSettings,
		Open:     openBadger,
	})
}

func badgerSettings(opts Options) []Setting {
	set := []Setting{
		{"Options.Logger = nil", "the default prints its life to stderr"},
		{"batch through WriteBatch", "the way its documentation gives for bulk writes; it limits a transaction (15 % of a memtable, 9.6 MB), so a greater set is several commits and not atomic"},
	}
	if opts.Sync {
		set = append(set, Setting{"Options.SyncWrites = true", "sync on; the default is off"})
	}
	return set
}

type badgerStore struct{ db *badger.DB }

func openBadger(dir string, opts Options) (Store, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithSyncWrites(opts.Sync))
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
	var written int64
	for key, value := range pairs {
		written += int64(len(key) + len(value))
		if err := b.Set(key, value); err != nil {
			return "", err
		}
	}
	note := ""
	if written > s.db.MaxBatchSize() {
		note = "WriteBatch split the set into several transactions: not atomic"
	}
	return note, b.Flush()
}

func (s badgerStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *badger.Txn) error { return fn(badgerReader{tx}) })
}

func (s badgerStore) Keys(see func([]byte) error) error {
	opts := badger.DefaultIteratorOptions
	opts.PrefetchValues = false // the documented key-only iteration
	return s.walk(opts, func(item *badger.Item) error { return see(item.Key()) })
}

func (s badgerStore) Pairs(see func(key, value []byte) error) error {
	return s.walk(badger.DefaultIteratorOptions, func(item *badger.Item) error {
		return item.Value(func(value []byte) error { return see(item.Key(), value) })
	})
}

func (s badgerStore) walk(opts badger.IteratorOptions, step func(*badger.Item) error) error {
	return s.db.View(func(tx *badger.Txn) error {
		it := tx.NewIterator(opts)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
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
