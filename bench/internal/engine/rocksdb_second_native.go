//go:build cgo && (native || native_rocksdb)

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/linxGnu/grocksdb"
)

// rocksdbSecondary reads beside a writer in another process. It catches up before
// every read, so that it sees what the engines see that share their file.
type rocksdbSecondary struct {
	*rocksdbStore
	dir string // for its own log
}

func openRocksDBSecondary(s *rocksdbStore, dir string) (Store, error) {
	s.options.SetMaxOpenFiles(-1) // a secondary must keep open what the writer may delete
	own, err := os.MkdirTemp(dir, "secondary-*")
	if err == nil {
		s.db, err = grocksdb.OpenDbAsSecondary(s.options, dir, own)
	}
	if err != nil {
		s.free()
		os.RemoveAll(own)
		return nil, err
	}
	return rocksdbSecondary{s, own}, nil
}

func (s rocksdbSecondary) Close() error {
	if err := s.rocksdbStore.Close(); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}

func (s rocksdbSecondary) Get(key []byte, see func([]byte) error) error {
	if err := s.db.TryCatchUpWithPrimary(); err != nil {
		return err
	}
	return s.rocksdbStore.Get(key, see)
}

// View has no snapshot, which a secondary does not support: it changes only when
// it catches up.
func (s rocksdbSecondary) View(fn func(Reader) error) error {
	if err := s.db.TryCatchUpWithPrimary(); err != nil {
		return err
	}
	return fn(rocksdbReader{s.db, s.read})
}

func (s rocksdbSecondary) Scan(from []byte, n int, see func(key, value []byte) error) error {
	if err := s.db.TryCatchUpWithPrimary(); err != nil {
		return err
	}
	return s.rocksdbStore.Scan(from, n, see)
}

// rocksdbError tells that another process, or this one, has the store open.
func rocksdbError(err error) error {
	if strings.Contains(err.Error(), "lock") && strings.Contains(err.Error(), "/LOCK: ") {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// rocksdbVersion reads the version from the options file of a new store: the C
// interface has no call for it.
func rocksdbVersion() string {
	const unknown = "librocksdb (version unknown)"
	dir, release, err := scratch.Make(os.TempDir())
	if err != nil {
		return unknown
	}
	defer scratch.Remove(dir)
	defer release()
	s, err := openRocksDB(dir, Options{})
	if err != nil || s.Close() != nil {
		return unknown
	}
	files, _ := filepath.Glob(filepath.Join(dir, "OPTIONS-*"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return unknown
		}
		for line := range strings.Lines(string(text)) {
			if _, version, ok := strings.Cut(line, "rocksdb_version="); ok {
				return "librocksdb " + strings.TrimSpace(version)
			}
		}
	}
	return unknown
}
