package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "goleveldb",
			Title:  "LevelDB in Go",
			Module: "github.com/syndtr/goleveldb",
			Cannot: map[Ability]string{
				CanProcesses: "refuses a reader beside a writer in another process",
			},
		},
		Settings: goleveldbSettings,
		Open:     openGoleveldb,
	})
}

func goleveldbSettings(opts Options) []Setting {
	set := []Setting{{"Options.Filter = filter.NewBloomFilter(10)", "its README and package documentation show it; the default is none. LevelDB and RocksDB have as many bits a key"}}
	if opts.Sync {
		set = append(set, Setting{"WriteOptions.Sync = true", "sync on; the default is off"})
	}
	if opts.Memory > 0 {
		o := goleveldbOptions(opts)
		set = append(set,
			Setting{fmt.Sprintf("Options.BlockCacheCapacity = %d", o.BlockCacheCapacity), "half of the memory the workload allows"},
			Setting{fmt.Sprintf("Options.WriteBuffer = %d", o.WriteBuffer), "an eighth of it: up to two are held, and an empty one to be used again"})
	}
	return set
}

func goleveldbOptions(opts Options) *opt.Options {
	o := &opt.Options{ReadOnly: opts.ReadOnly, Filter: filter.NewBloomFilter(bloomBits)}
	if opts.Memory > 0 {
		o.BlockCacheCapacity = int(opts.Memory / 2)
		o.WriteBuffer = int(opts.Memory / 8)
	}
	return o
}

type goleveldbStore struct {
	db    *leveldb.DB
	write *opt.WriteOptions
	opts  *opt.Options
	spare *spare[*leveldb.Batch]
}

func openGoleveldb(dir string, opts Options) (Store, error) {
	o := goleveldbOptions(opts)
	db, err := leveldb.OpenFile(dir, o)
	if err != nil && lockRefused(err) {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	return goleveldbStore{db, &opt.WriteOptions{Sync: opts.Sync}, o, &spare[*leveldb.Batch]{}}, nil
}

func (s goleveldbStore) Close() error                { return s.db.Close() }
func (s goleveldbStore) Put(key, value []byte) error { return s.db.Put(key, value, s.write) }
func (s goleveldbStore) Delete(key []byte) error     { return s.db.Delete(key, s.write) }

func (s goleveldbStore) Get(key []byte, see func([]byte) error) error {
	return goleveldbReader{s.db}.Get(key, see)
}

func (s goleveldbStore) PutBatch(pairs Pairs) (string, error) {
	b := s.spare.take(func() *leveldb.Batch { return new(leveldb.Batch) })
	size := addAll(pairs, b.Put)
	err := s.db.Write(b, s.write)
	b.Reset()
	s.spare.give(b, size)
	return "", err
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
	return s.walk(nil, see)
}

func (s goleveldbStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	return ended(s.walk(&util.Range{Start: from}, limited(n, see)))
}

// Settle waits until no level is over the size at which LevelDB compacts it.
func (s goleveldbStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) {
		var stats leveldb.DBStats
		if err := s.db.Stats(&stats); err != nil {
			return false, err
		}
		for level, tables := range stats.LevelTablesCounts {
			if level == 0 && tables >= s.opts.GetCompactionL0Trigger() {
				return false, nil
			}
			if level > 0 && stats.LevelSizes[level] >= s.opts.GetCompactionTotalSize(level) {
				return false, nil
			}
		}
		return true, nil
	})
}

func (s goleveldbStore) walk(within *util.Range, see func(key, value []byte) error) error {
	it := s.db.NewIterator(within, nil)
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
