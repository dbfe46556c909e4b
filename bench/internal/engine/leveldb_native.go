//go:build cgo && (native || native_leveldb)

package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/jmhodges/levigo"
)

func init() {
	Register(Driver{
		Info:     leveldbInfo,
		Settings: leveldbSettings,
		Open:     openLevelDB,
		Library: func() string {
			return fmt.Sprintf("libleveldb %d.%d", levigo.GetLevelDBMajorVersion(), levigo.GetLevelDBMinorVersion())
		},
	})
}

func leveldbSettings(opts Options) []Setting {
	set := []Setting{{"Options.filter_policy = NewBloomFilterPolicy(10)", "options.h: many applications will benefit. The default is none. filter_policy.h calls 10 bits a key a good value"}}
	if opts.Sync {
		set = append(set, Setting{"WriteOptions.sync = true", "sync on; the default is off"})
	}
	if opts.Memory > 0 {
		cache, buffers := nativeMemory(opts.Memory)
		set = append(set, Setting{fmt.Sprintf("block_cache = %d, write_buffer_size = %d", cache, buffers/2),
			"the memory allowed; there are up to two write buffers. Tables are read through memory maps beside it"})
	}
	return set
}

type leveldbStore struct {
	db      *levigo.DB
	options *levigo.Options
	cache   *levigo.Cache // nil: LevelDB's own
	filter  *levigo.FilterPolicy
	read    *levigo.ReadOptions
	write   *levigo.WriteOptions
	spare   spare[*levigo.WriteBatch]
}

func openLevelDB(dir string, opts Options) (Store, error) {
	s := &leveldbStore{options: levigo.NewOptions(), read: levigo.NewReadOptions(), write: levigo.NewWriteOptions(), filter: levigo.NewBloomFilter(bloomBits)}
	s.options.SetCreateIfMissing(true)
	s.options.SetFilterPolicy(s.filter)
	s.write.SetSync(opts.Sync)
	if opts.Memory > 0 {
		cache, buffers := nativeMemory(opts.Memory)
		s.cache = levigo.NewLRUCache(cache)
		s.options.SetCache(s.cache)
		s.options.SetWriteBufferSize(buffers / 2)
	}
	var err error
	if s.db, err = levigo.Open(dir, s.options); err != nil {
		s.free()
		if strings.Contains(err.Error(), "lock "+dir) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return nil, err
	}
	return s, nil
}

func (s *leveldbStore) free() {
	s.read.Close()
	s.write.Close()
	s.options.Close()
	s.filter.Close()
	if s.cache != nil {
		s.cache.Close()
	}
}

func (s *leveldbStore) Close() error {
	s.db.Close()
	s.spare.end((*levigo.WriteBatch).Close)
	s.free()
	return nil
}

func (s *leveldbStore) Put(key, value []byte) error { return s.db.Put(s.write, key, value) }
func (s *leveldbStore) Delete(key []byte) error     { return s.db.Delete(s.write, key) }

func (s *leveldbStore) Get(key []byte, see func([]byte) error) error {
	return leveldbReader{s.db, s.read}.Get(key, see)
}

func (s *leveldbStore) PutBatch(pairs Pairs) (string, error) {
	b := s.spare.take(levigo.NewWriteBatch)
	size := addAll(pairs, b.Put)
	err := s.db.Write(s.write, b)
	b.Clear()
	if !s.spare.give(b, size) {
		b.Close()
	}
	return "", err
}

func (s *leveldbStore) View(fn func(Reader) error) error {
	snap := s.db.NewSnapshot()
	defer s.db.ReleaseSnapshot(snap)
	read := levigo.NewReadOptions()
	defer read.Close()
	read.SetSnapshot(snap)
	return fn(leveldbReader{s.db, read})
}

func (s *leveldbStore) Keys(see func([]byte) error) error {
	return s.walk(nil, -1, func(it *levigo.Iterator) error { return see(it.Key()) })
}

func (s *leveldbStore) Pairs(see func(key, value []byte) error) error {
	return s.Scan(nil, -1, see)
}

func (s *leveldbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return s.walk(from, n, func(it *levigo.Iterator) error { return see(it.Key(), it.Value()) })
}

// Settle waits until no level is over the size at which LevelDB compacts it.
func (s *leveldbStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) { return leveldbAtRest(s.db.PropertyValue("leveldb.sstables")) })
}

// LevelDB compacts level 0 from so many tables on, level 1 from so many bytes, each further
// one from ten times as many, and the last never (db/dbformat.h, db/version_set.cc).
const (
	leveldbTables = 4
	leveldbBytes  = 10 << 20
	leveldbLast   = 6
)

// leveldbAtRest reads the list of all tables, "--- level 1 ---" and below it " 17:123['a'
// .. 'd']" for each: its number, its bytes, its keys.
func leveldbAtRest(list string) (bool, error) {
	level, tables, bytes, most := -1, 0, int64(0), int64(leveldbBytes)
	for line := range strings.Lines(list) {
		if n, err := fmt.Sscanf(line, "--- level %d ---", &level); n == 1 && err == nil {
			if tables, bytes = 0, 0; level > 1 {
				most *= 10
			}
			continue
		}
		var number, size int64
		if _, err := fmt.Sscanf(line, " %d:%d[", &number, &size); err != nil || level < 0 {
			return false, fmt.Errorf("leveldb.sstables: %q below level %d", line, level)
		}
		tables, bytes = tables+1, bytes+size
		if level == 0 && tables >= leveldbTables || level > 0 && level < leveldbLast && bytes >= most {
			return false, nil
		}
	}
	if level < 0 {
		return false, fmt.Errorf("leveldb.sstables: %q", list)
	}
	return true, nil
}

// walk visits n places from a key on; all of them if n is negative.
func (s *leveldbStore) walk(from []byte, n int, step func(*levigo.Iterator) error) error {
	it := s.db.NewIterator(s.read)
	defer it.Close()
	if len(from) == 0 {
		it.SeekToFirst()
	} else {
		it.Seek(from)
	}
	for ; n != 0 && it.Valid(); n-- {
		if err := step(it); err != nil {
			return err
		}
		if n != 1 {
			it.Next()
		}
	}
	return it.GetError()
}

type leveldbReader struct {
	db   *levigo.DB
	read *levigo.ReadOptions
}

func (r leveldbReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.db.Get(r.read, key)
	if err != nil {
		return err
	}
	if value == nil {
		return ErrNotFound
	}
	return see(value)
}
