package engine

import (
	"errors"
	"log"

	"github.com/cockroachdb/pebble/v2"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "pebble",
			Title:  "log-structured merge tree, from CockroachDB",
			Module: "github.com/cockroachdb/pebble/v2",
		},
		Settings: pebbleSettings,
		Open:     openPebble,
	})
}

func pebbleSettings(opts Options) []Setting {
	set := []Setting{{"Options.Logger = errors only", "the default prints every compaction"}}
	if !opts.Sync {
		set = append(set, Setting{"pebble.NoSync on every write",
			"sync off; weaker than the others' sync off: an acknowledged write can be lost when the process is killed"})
	}
	return set
}

// pebbleLogger drops what is only information.
type pebbleLogger struct{}

func (pebbleLogger) Infof(string, ...any)                {}
func (pebbleLogger) Errorf(format string, args ...any)   { log.Printf("pebble: "+format, args...) }
func (l pebbleLogger) Fatalf(format string, args ...any) { log.Fatalf("pebble: "+format, args...) }

type pebbleStore struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

func openPebble(dir string, opts Options) (Store, error) {
	db, err := pebble.Open(dir, &pebble.Options{Logger: pebbleLogger{}})
	if err != nil {
		return nil, err
	}
	s := pebbleStore{db: db, write: pebble.NoSync}
	if opts.Sync {
		s.write = pebble.Sync
	}
	return s, nil
}

func (s pebbleStore) Close() error                { return s.db.Close() }
func (s pebbleStore) Put(key, value []byte) error { return s.db.Set(key, value, s.write) }
func (s pebbleStore) Delete(key []byte) error     { return s.db.Delete(key, s.write) }

func (s pebbleStore) Get(key []byte, see func([]byte) error) error {
	return pebbleReader{s.db}.Get(key, see)
}

func (s pebbleStore) PutBatch(pairs Pairs) (string, error) {
	b := s.db.NewBatch()
	defer b.Close()
	for key, value := range pairs {
		if err := b.Set(key, value, nil); err != nil {
			return "", err
		}
	}
	return "", b.Commit(s.write)
}

func (s pebbleStore) View(fn func(Reader) error) error {
	snap := s.db.NewSnapshot()
	defer snap.Close()
	return fn(pebbleReader{snap})
}

func (s pebbleStore) Keys(see func([]byte) error) error {
	return s.walk(func(it *pebble.Iterator) error { return see(it.Key()) })
}

func (s pebbleStore) Pairs(see func(key, value []byte) error) error {
	return s.walk(func(it *pebble.Iterator) error {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		return see(it.Key(), value)
	})
}

func (s pebbleStore) walk(step func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := step(it); err != nil {
			it.Close()
			return err
		}
	}
	return it.Close() // returns the error that ended the walk, if one did
}

type pebbleReader struct{ r pebble.Reader }

func (r pebbleReader) Get(key []byte, see func([]byte) error) error {
	value, closer, err := r.r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	if err := see(value); err != nil {
		closer.Close()
		return err
	}
	return closer.Close()
}
