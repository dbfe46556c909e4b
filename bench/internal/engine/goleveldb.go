package engine

import (
	"errors"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "goleveldb",
			Title:  "LevelDB in Go",
			Module: "github.com/syndtr/goleveldb",
		},
		Settings: goleveldbSettings,
		Open:     openGoleveldb,
	})
}

func goleveldbSettings(opts Options) []Setting {
	if !opts.Sync {
		return nil // WriteOptions.Sync is off by default
	}
	return []Setting{{"WriteOptions.Sync = true", "sync on; the default is off"}}
}

type goleveldbStore struct {
	db    *leveldb.DB
	write *opt.WriteOptions
}

func openGoleveldb(dir string, opts Options) (Store, error) {
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		return nil, err
	}
	return goleveldbStore{db, &opt.WriteOptions{Sync: opts.Sync}}, nil
}

func (s goleveldbStore) Close() error                { return s.db.Close() }
func (s goleveldbStore) Put(key, value []byte) error { return s.db.Put(key, value, s.write) }
func (s goleveldbStore) Delete(key []byte) error     { return s.db.Delete(key, s.write) }

func (s goleveldbStore) Get(key []byte, see func([]byte) error) error {
	return goleveldbReader{s.db}.Get(key, see)
}

func (s goleveldbStore) PutBatch(pairs Pairs) (string, error) {
	b := new(leveldb.Batch)
	for key, value := range pairs {
		b.Put(key, value)
	}
	return "", s.db.Write(b, s.write)
}

func (s goleveldbStore) View(fn func(Reader) error) error {
	snap, err := s.db.GetSnapshot()
	if err != nil {
		return err
	}
	defer snap.Release()
	return fn(goleveldbReader{snap})
}

func (s goleveldbStore) Keys(see func([]byte) error) error {
	return s.Pairs(func(key, _ []byte) error { return see(key) })
}

func (s goleveldbStore) Pairs(see func(key, value []byte) error) error {
	it := s.db.NewIterator(nil, nil)
	defer it.Release()
	for it.Next() {
		if err := see(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}

// goleveldbReader reads from the store or from a snapshot of it.
type goleveldbReader struct {
	r interface {
		Get(key []byte, ro *opt.ReadOptions) ([]byte, error)
	}
}

func (r goleveldbReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.r.Get(key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return see(value)
}
