package engine

import (
	"errors"

	"github.com/cairndb/cairn"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "cairn",
			Title:  "ordered, log-structured, one bound for all memory",
			Module: "github.com/cairndb/cairn",
		},
		Settings: cairnSettings,
		Open:     openCairn,
	})
}

func cairnSettings(opts Options) []Setting {
	if opts.Sync {
		return nil // Durable is the default
	}
	return []Setting{{"Options.Durability = Relaxed",
		"sync off; an acknowledged commit survives a process kill; the log is synced in the background every second"}}
}

type cairnStore struct {
	db  *cairn.DB
	buf []byte
}

func openCairn(dir string, opts Options) (Store, error) {
	o := &cairn.Options{}
	if !opts.Sync {
		o.Durability = cairn.Relaxed
	}
	db, err := cairn.Open(dir, o)
	if err != nil {
		return nil, err
	}
	return &cairnStore{db: db}, nil
}

func (s *cairnStore) Close() error                { return s.db.Close() }
func (s *cairnStore) Put(key, value []byte) error { return s.db.Put(key, value) }
func (s *cairnStore) Delete(key []byte) error     { return s.db.Delete(key) }

func (s *cairnStore) Get(key []byte, see func([]byte) error) error {
	value, err := s.db.GetTo(key, s.buf)
	if err != nil {
		return cairnError(err)
	}
	s.buf = value
	return see(value)
}

func (s *cairnStore) PutBatch(pairs Pairs) (string, error) {
	b := cairn.NewBatch()
	for key, value := range pairs {
		b.Put(key, value)
	}
	return "", s.db.Write(b)
}

func (s *cairnStore) View(fn func(Reader) error) error {
	return s.db.View(func(tx *cairn.Tx) error { return fn(cairnReader{tx}) })
}

func (s *cairnStore) Keys(see func([]byte) error) error {
	return s.db.View(func(tx *cairn.Tx) error {
		for key := range tx.Keys(cairn.Range{}) {
			if err := see(key); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *cairnStore) Pairs(see func(key, value []byte) error) error {
	return s.db.View(func(tx *cairn.Tx) error {
		for key, value := range tx.Scan(cairn.Range{}) {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

type cairnReader struct{ tx *cairn.Tx }

func (r cairnReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.tx.Get(key)
	if err != nil {
		return cairnError(err)
	}
	return see(value)
}

func cairnError(err error) error {
	if errors.Is(err, cairn.ErrNotFound) {
		return ErrNotFound
	}
	return err
}
