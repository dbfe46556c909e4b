package engine

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "pebble",
			Title:  "log-structured merge tree, from CockroachDB",
			Module: "github.com/cockroachdb/pebble/v2",
			Cannot: map[Ability]string{
				CanProcesses: "refuses to open beside another process, read-only too",
			},
			LosesAtKill: "its log is written by a goroutine of its own, after a commit has returned",
		},
		Settings: pebbleSettings,
		Open:     openPebble,
	})
}

func pebbleSettings(opts Options) []Setting {
	set := []Setting{
		{"Options.Logger = errors only", "the default prints the logs that each opening finds and replays"},
		{"Options.FormatMajorVersion = pebble.FormatNewest", "its documentation recommends to set it explicitly; the default is the oldest format that it can still write"},
		{"Options.Levels[0].FilterPolicy = bloom.FilterPolicy(10)", "so in all levels: its documentation names it as what can reduce disk reads for Get; the default is none. LevelDB and RocksDB have as many bits a key"},
		{"program built with CGO_ENABLED=0", "the laboratory's for rows of pure Go is: Pebble has its memtables and block cache outside the Go heap only in a program built with cgo, so here they are on it. Measured once, in ycsb: 3.1 s of CPU time against 2.5, a peak of resident memory of 81 MB against 62"},
	}
	if !opts.Sync {
		set = append(set, Setting{"pebble.NoSync on every write",
			"sync off; weaker than the others' sync off: a process kill loses acknowledged writes"})
	}
	if opts.Memory > 0 {
		o := pebbleOptions(opts)
		set = append(set,
			Setting{fmt.Sprintf("Options.CacheSize = %d", o.CacheSize), "half of the memory the workload allows"},
			Setting{fmt.Sprintf("Options.MemTableSize = %d", o.MemTableSize), "an eighth of it: up to two are held"})
	}
	return set
}

func pebbleOptions(opts Options) *pebble.Options {
	o := &pebble.Options{Logger: pebbleLogger{}, ReadOnly: opts.ReadOnly, FormatMajorVersion: pebble.FormatNewest}
	o.Levels[0].FilterPolicy = bloom.FilterPolicy(bloomBits) // the others take it from there
	if opts.Memory > 0 {
		o.CacheSize = opts.Memory / 2
		o.MemTableSize = uint64(min(opts.Memory/8, 1<<30))
	}
	return o
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
	db, err := pebble.Open(dir, pebbleOptions(opts))
	if err != nil && lockRefused(err, "lock held by current process") {
		return nil, busy(err)
	}
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
	return s.walk(nil, func(it *pebble.Iterator) error { return see(it.Key()) })
}

func (s pebbleStore) Pairs(see func(key, value []byte) error) error {
	return s.walkPairs(nil, see)
}

func (s pebbleStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	var bounds *pebble.IterOptions // an empty bound that is not nil is a fault under pebble's own assertions
	if len(from) > 0 {
		bounds = &pebble.IterOptions{LowerBound: from}
	}
	return ended(s.walkPairs(bounds, limited(n, see)))
}

// Settle waits for flushes and compactions that run; Pebble starts those that are
// due by itself.
func (s pebbleStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) {
		m := s.db.Metrics()
		return m.Flush.NumInProgress == 0 && m.Compact.NumInProgress == 0, nil
	})
}

func (s pebbleStore) walkPairs(bounds *pebble.IterOptions, see func(key, value []byte) error) error {
	return s.walk(bounds, func(it *pebble.Iterator) error {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		return see(it.Key(), value)
	})
}

func (s pebbleStore) walk(bounds *pebble.IterOptions, step func(*pebble.Iterator) error) error {
	it, err := s.db.NewIter(bounds)
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
