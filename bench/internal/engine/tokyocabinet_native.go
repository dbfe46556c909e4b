//go:build cgo && (native || native_tokyocabinet)

package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/cairndb/cairn/bench/internal/tokyo"
)

func init() {
	version := func() string { return "libtokyocabinet " + tokyo.Version() }
	Register(Driver{Info: tokyoHashInfo, Settings: tokyoHashSettings, Open: openTokyoHash, Library: version})
	Register(Driver{Info: tokyoTreeInfo, Settings: tokyoTreeSettings, Open: openTokyoTree, Library: version})
}

func tokyoHashSettings(opts Options) []Setting {
	return append([]Setting{{fmt.Sprintf("tchdbtune bnum = %d x keys, where that is more than the default %d", tokyoBuckets, tokyoLeast),
		"its documentation suggests half to four times the number of records; with fewer, records share buckets"}}, tokyoSettings(opts, "tchdb", "HDB", Setting{"tchdbput, not tchdbputasync",
		"sync off; tchdbputasync keeps acknowledged records in its own memory"})...)
}

// Of the hash database: buckets for each key that is expected, and those it has by default.
const (
	tokyoBuckets = 2
	tokyoLeast   = 131071
)

func tokyoTreeSettings(opts Options) []Setting {
	return tokyoSettings(opts, "tcbdb", "BDB", Setting{"the default",
		"sync off; weaker than the others' sync off: what single puts and deletes change stays in its own memory, and a process kill loses it; a batch is a transaction, which writes it"})
}

func tokyoSettings(opts Options, prefix, flag string, off Setting) []Setting {
	set := []Setting{
		{flag + "OLCKNB", "a second process is refused at once; the default waits without end"},
		{prefix + "setmutex", "its own locks, which its documentation demands where threads share a database; the default has none"},
		{"batch in a transaction", "its only atomic way to write many records"},
	}
	if !opts.Sync {
		return append(set, off)
	}
	return append(set, Setting{prefix + "sync after every commit",
		"sync on; the default never syncs. The commit is durable then, but a power cut in the middle of one can break the file; transactions with " + flag + "OTSYNC prevent that, with five syncs and more each"})
}

// tokyoStore is what both databases have in common.
type tokyoStore struct {
	db interface {
		Put(key, value []byte) error
		Delete(key []byte) error
		Update(fn func() error) error
		Sync() error
		Close() error
	}
	sync bool

	// Writes of one transaction must not mix with another's, and a walk loses its
	// place when the database changes: writers hold it, and walks share it. The
	// library lets one writer in at a time anyway.
	lock sync.RWMutex
}

func (s *tokyoStore) Close() error { return s.db.Close() }

func (s *tokyoStore) Put(key, value []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.committed(s.db.Put(key, value))
}

func (s *tokyoStore) Delete(key []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.committed(s.db.Delete(key))
}

func (s *tokyoStore) PutBatch(pairs Pairs) (string, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return "", s.committed(s.db.Update(func() error {
		for key, value := range pairs {
			if err := s.db.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

// committed makes what was done durable, where that is asked.
func (s *tokyoStore) committed(err error) error {
	if err != nil || !s.sync {
		return err
	}
	return s.db.Sync()
}

type tokyoHash struct {
	tokyoStore
	hash *tokyo.Hash
	bufs sync.Pool  // of *[]byte, for values
	iter sync.Mutex // a hash database has one iterator
}

func openTokyoHash(dir string, opts Options) (Store, error) {
	h, err := tokyo.OpenHash(filepath.Join(dir, "hash.tch"), max(tokyoLeast, tokyoBuckets*int64(opts.Keys)))
	if err != nil {
		return nil, tokyoError(err)
	}
	return &tokyoHash{tokyoStore: tokyoStore{db: h, sync: opts.Sync}, hash: h}, nil
}

func (s *tokyoHash) Get(key []byte, see func([]byte) error) error {
	buf, _ := s.bufs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	value, err := s.hash.Get(key, *buf)
	if err == nil {
		err = see(value)
	}
	*buf = value
	s.bufs.Put(buf)
	return tokyoError(err)
}

func (s *tokyoHash) Keys(see func([]byte) error) error {
	s.iter.Lock()
	defer s.iter.Unlock()
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.hash.Keys(see)
}

func (s *tokyoHash) Pairs(see func(key, value []byte) error) error {
	s.iter.Lock()
	defer s.iter.Unlock()
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.hash.Pairs(see)
}

type tokyoTree struct {
	tokyoStore
	tree *tokyo.Tree
}

func openTokyoTree(dir string, opts Options) (Store, error) {
	t, err := tokyo.OpenTree(filepath.Join(dir, "tree.tcb"))
	if err != nil {
		return nil, tokyoError(err)
	}
	return &tokyoTree{tokyoStore: tokyoStore{db: t, sync: opts.Sync}, tree: t}, nil
}

func (s *tokyoTree) Get(key []byte, see func([]byte) error) error {
	return tokyoError(s.tree.Get(key, see))
}

func (s *tokyoTree) Keys(see func([]byte) error) error {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.tree.Keys(see)
}

func (s *tokyoTree) Pairs(see func(key, value []byte) error) error { return s.Scan(nil, -1, see) }

func (s *tokyoTree) Scan(from []byte, n int, see func(key, value []byte) error) error {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.tree.Scan(from, n, see)
}

func tokyoError(err error) error {
	switch {
	case errors.Is(err, tokyo.ErrNoRecord):
		return ErrNotFound
	case errors.Is(err, tokyo.ErrLocked):
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
