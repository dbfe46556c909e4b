//go:build cgo && (native || native_lmdb)

package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/PowerDNS/lmdb-go/lmdb"
)

func init() {
	Register(Driver{
		Info:     lmdbInfo,
		Settings: lmdbSettings,
		Open:     openLMDB,
		Library: func() string {
			major, minor, patch, _ := lmdb.Version()
			return fmt.Sprintf("liblmdb %d.%d.%d", major, minor, patch)
		},
	})
}

// lmdbMapBytes is the size of a new store's map. Address space is all it takes,
// except on Windows, which gives the file that length.
var lmdbMapBytes int64 = 1 << 40

func init() {
	if strconv.IntSize == 32 || runtime.GOOS == "windows" {
		lmdbMapBytes = 1 << 30
	}
}

func lmdbSettings(opts Options) []Setting {
	set := []Setting{{fmt.Sprintf("mdb_env_set_mapsize(%d)", lmdbMapBytes),
		"the default is 1 MiB, and a full map an error; its documentation advises the largest size one may ever need: it takes address space only. A full map is doubled"}}
	set = append(set, Setting{"empty values refused", errLMDBEmpty.Error()})
	if opts.Memory > 0 {
		set = append(set, Setting{"MDB_NORDAHEAD", "its documentation advises it for random reads of a store larger than memory"})
	}
	if opts.Sync {
		return set
	}
	return append(set, Setting{"MDB_NOSYNC",
		"sync off; the default syncs every commit. An acknowledged commit survives a process kill; a system crash can lose commits and damage the file"})
}

func openLMDB(dir string, opts Options) (Store, error) {
	var flags uint
	if !opts.Sync {
		flags |= lmdb.NoSync
	}
	if opts.ReadOnly {
		flags |= lmdb.Readonly
	}
	if opts.Memory > 0 {
		flags |= lmdb.NoReadahead
	}
	env, size, err := openLMDBEnv(dir, flags)
	if err != nil {
		return nil, err
	}
	s := newLMDBStore(env, size)
	open := env.Update
	if opts.ReadOnly {
		open = env.View
	}
	if err := open(s.openRoot); err != nil {
		env.Close()
		return nil, err
	}
	return s, nil
}

// openLMDBEnv halves the map until the address space the process is allowed has
// room for it.
func openLMDBEnv(dir string, flags uint) (*lmdb.Env, int64, error) {
	for size := lmdbMapBytes; ; size /= 2 {
		env, err := lmdb.NewEnv()
		if err != nil {
			return nil, 0, err
		}
		if err = env.SetMapSize(size); err == nil {
			err = env.Open(filepath.Clean(dir), flags, 0o600)
		}
		if err == nil {
			return env, size, nil
		}
		env.Close()
		if !lmdb.IsErrnoSys(err, syscall.ENOMEM) || size <= 1<<20 {
			return nil, 0, err
		}
	}
}

// errLMDBEmpty: lmdb-go touches the first byte of what it lends, which for an empty
// value may lie beyond the end of the file.
var errLMDBEmpty = errors.New("an empty value, which lmdb-go may fail to read back (SIGBUS)")

func (s *lmdbStore) Put(key, value []byte) error {
	return s.update(func(tx *lmdb.Txn) error { return s.putIn(tx, key, value) })
}

func (s *lmdbStore) putIn(tx *lmdb.Txn, key, value []byte) error {
	if len(value) == 0 {
		return errLMDBEmpty
	}
	return tx.Put(s.root, key, value, 0)
}

func (s *lmdbStore) Delete(key []byte) error {
	return s.update(func(tx *lmdb.Txn) error { return tx.Del(s.root, key, nil) })
}

// PutBatch is one transaction. It goes through pairs again if the map was full.
func (s *lmdbStore) PutBatch(pairs Pairs) (string, error) {
	return "", s.update(func(tx *lmdb.Txn) error {
		for key, value := range pairs {
			if err := s.putIn(tx, key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *lmdbStore) Get(key []byte, see func([]byte) error) error {
	tx, err := s.begin()
	if err != nil {
		return err
	}
	err = lmdbReader{s, tx}.Get(key, see)
	s.end(tx)
	return err
}

func (s *lmdbStore) View(fn func(Reader) error) error {
	tx, err := s.begin()
	if err != nil {
		return err
	}
	err = fn(lmdbReader{s, tx})
	s.end(tx)
	return err
}

func (s *lmdbStore) Keys(see func([]byte) error) error {
	return s.Pairs(func(key, _ []byte) error { return see(key) }) // values are lent, not copied
}

func (s *lmdbStore) Pairs(see func(key, value []byte) error) error {
	return s.walk(nil, -1, see)
}

func (s *lmdbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return s.walk(from, n, see)
}

// walk visits n pairs from a key on; all of them if n is negative.
func (s *lmdbStore) walk(from []byte, n int, see func(key, value []byte) error) error {
	tx, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end(tx)
	c, err := tx.txn.OpenCursor(s.root)
	if err != nil {
		return err
	}
	defer c.Close()
	op := uint(lmdb.SetRange)
	if len(from) == 0 {
		op = lmdb.First
	}
	for ; n != 0; n-- {
		key, value, err := c.Get(from, nil, op)
		if lmdb.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := see(key, value); err != nil {
			return err
		}
		from, op = nil, lmdb.Next
	}
	return nil
}

type lmdbReader struct {
	s  *lmdbStore
	tx *lmdbTxn
}

func (r lmdbReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.tx.txn.Get(r.s.root, key)
	if lmdb.IsNotFound(err) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return see(value)
}
