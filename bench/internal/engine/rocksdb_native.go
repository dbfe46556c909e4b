//go:build cgo && (native || native_rocksdb)

package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/linxGnu/grocksdb"
)

// grocksdb v1.7.15: from v1.7.16 on it calls what RocksDB 7.8 of Debian 12 has not
// (rocksdb_block_based_options_set_optimize_filters_for_memory).
func init() {
	Register(Driver{
		Info:     rocksdbInfo,
		Settings: rocksdbSettings,
		Open:     openRocksDB,
		Library:  rocksdbVersion,
	})
}

func rocksdbSettings(opts Options) []Setting {
	set := []Setting{{"in a second process: OpenAsSecondary, max_open_files = -1, TryCatchUpWithPrimary before every get, view and scan",
		"the documented way to read beside a writer and see its newest commit"},
		{"BlockBasedTableOptions.filter_policy = NewBloomFilterPolicy(10)", "table.h: many applications will benefit. The default is none. filter_policy.h calls 9.9 bits a key a good choice; LevelDB has 10 too"}}
	if opts.Sync {
		set = append(set, Setting{"WriteOptions.sync = true", "sync on; the default is off, and then the log is still written"})
	}
	if opts.Memory > 0 {
		cache, buffers := nativeMemory(opts.Memory)
		set = append(set, Setting{fmt.Sprintf("block_cache = %d, cache_index_and_filter_blocks, db_write_buffer_size = write_buffer_size = %d", cache, buffers),
			"the memory allowed"})
	}
	return set
}

type rocksdbStore struct {
	db      *grocksdb.DB
	options *grocksdb.Options
	cache   *grocksdb.Cache // nil: RocksDB's own
	read    *grocksdb.ReadOptions
	write   *grocksdb.WriteOptions
	lax     *grocksdb.WriteOptions // never synced
	spare   spare[*grocksdb.WriteBatch]
}

func openRocksDB(dir string, opts Options) (Store, error) {
	s := &rocksdbStore{options: grocksdb.NewDefaultOptions(), read: grocksdb.NewDefaultReadOptions(), write: grocksdb.NewDefaultWriteOptions(), lax: grocksdb.NewDefaultWriteOptions()}
	s.write.SetSync(opts.Sync)
	table := grocksdb.NewDefaultBlockBasedTableOptions()
	table.SetFilterPolicy(grocksdb.NewBloomFilterFull(bloomBits))
	if opts.Memory > 0 {
		s.limit(table, opts.Memory)
	}
	s.options.SetBlockBasedTableFactory(table)
	if opts.ReadOnly {
		return openRocksDBSecondary(s, dir)
	}
	s.options.SetCreateIfMissing(true)
	var err error
	if s.db, err = grocksdb.OpenDb(s.options, dir); err != nil {
		s.free()
		return nil, rocksdbError(err)
	}
	return s, nil
}

func (s *rocksdbStore) limit(table *grocksdb.BlockBasedTableOptions, memory int64) {
	cache, buffers := nativeMemory(memory)
	s.cache = grocksdb.NewLRUCache(uint64(cache))
	table.SetBlockCache(s.cache)
	table.SetCacheIndexAndFilterBlocks(true)
	s.options.SetDbWriteBufferSize(uint64(buffers))
	s.options.SetWriteBufferSize(uint64(buffers))
}

func (s *rocksdbStore) free() {
	s.read.Destroy()
	s.write.Destroy()
	s.lax.Destroy()
	s.options.Destroy()
	if s.cache != nil {
		s.cache.Destroy()
	}
}

func (s *rocksdbStore) Close() error {
	s.db.Close()
	s.spare.end((*grocksdb.WriteBatch).Destroy)
	s.free()
	return nil
}

func (s *rocksdbStore) Put(key, value []byte) error { return s.db.Put(s.write, key, value) }
func (s *rocksdbStore) Delete(key []byte) error     { return s.db.Delete(s.write, key) }

// DeleteUnsynced is a delete whose WriteOptions.sync is false whatever the store was
// opened with.
func (s *rocksdbStore) DeleteUnsynced(key []byte) error { return s.db.Delete(s.lax, key) }

func (s *rocksdbStore) Get(key []byte, see func([]byte) error) error {
	return rocksdbReader{s.db, s.read}.Get(key, see)
}

func (s *rocksdbStore) PutBatch(pairs Pairs) (string, error) {
	b := s.spare.take(grocksdb.NewWriteBatch)
	size := addAll(pairs, b.Put)
	err := s.db.Write(s.write, b)
	b.Clear()
	if !s.spare.give(b, size) {
		b.Destroy()
	}
	return "", err
}

func (s *rocksdbStore) View(fn func(Reader) error) error {
	snap := s.db.NewSnapshot()
	defer s.db.ReleaseSnapshot(snap)
	read := grocksdb.NewDefaultReadOptions()
	defer read.Destroy()
	read.SetSnapshot(snap)
	return fn(rocksdbReader{s.db, read})
}

func (s *rocksdbStore) Keys(see func([]byte) error) error {
	return s.walk(nil, -1, func(it *grocksdb.Iterator) error { return see(it.Key().Data()) })
}

func (s *rocksdbStore) Pairs(see func(key, value []byte) error) error {
	return s.Scan(nil, -1, see)
}

func (s *rocksdbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return s.walk(from, n, func(it *grocksdb.Iterator) error { return see(it.Key().Data(), it.Value().Data()) })
}

// walk visits n places from a key on; all of them if n is negative.
func (s *rocksdbStore) walk(from []byte, n int, step func(*grocksdb.Iterator) error) error {
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
	return it.Err()
}

// rocksdbDue are the properties that count work which is due or running.
var rocksdbDue = []string{"rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.compaction-pending", "rocksdb.num-running-compactions"}

// Settle asks: this version has no call that waits.
func (s *rocksdbStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) {
		var due uint64
		for _, name := range rocksdbDue {
			n, ok := s.db.GetIntProperty(name)
			if !ok {
				return false, errors.New("rocksdb does not know its property " + name)
			}
			due += n
		}
		return due == 0, nil
	})
}

type rocksdbReader struct {
	db   *grocksdb.DB
	read *grocksdb.ReadOptions
}

func (r rocksdbReader) Get(key []byte, see func([]byte) error) error {
	value, err := r.db.GetPinned(r.read, key)
	if err != nil {
		return err
	}
	if !value.Exists() {
		return ErrNotFound
	}
	err = see(value.Data())
	value.Destroy()
	return err
}
