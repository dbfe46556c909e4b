package engine

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	var set []Setting
	if !opts.Sync { // Durable is the default
		set = append(set, Setting{"Options.Durability = Relaxed",
			"sync off; an acknowledged commit survives a process kill; the log is synced in the background every second"})
	}
	memory := Setting{"Options.Memory not set", "no departure, but no rival's default is alike: it may keep in memory a quarter of what the machine or control group has; the workloads memory and lean allow all engines the same"}
	if opts.Memory > 0 {
		memory = Setting{fmt.Sprintf("Options.Memory = %d", opts.Memory), "what the workload allows"}
	}
	return append(set, memory, Setting{"gets: DB.GetTo, of values of 8 KiB and more Tx.Get",
		"the cheapest documented way for each: a copy into memory that is used again, and a slice the store lends"})
}

type cairnStore struct {
	db    *cairn.DB
	bufs  sync.Pool   // of *[]byte, for the values of gets
	small atomic.Bool // the last value a get saw was
	spare spare[*cairn.Batch]
}

func openCairn(dir string, opts Options) (Store, error) {
	o := &cairn.Options{ReadOnly: opts.ReadOnly, Memory: opts.Memory}
	if !opts.Sync {
		o.Durability = cairn.Relaxed
	}
	db, err := cairn.Open(dir, o)
	var locked *cairn.LockedError
	if errors.As(err, &locked) {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	return &cairnStore{db: db}, nil
}

func (s *cairnStore) Close() error                { return s.db.Close() }
func (s *cairnStore) Put(key, value []byte) error { return s.db.Put(key, value) }
func (s *cairnStore) Delete(key []byte) error     { return s.db.Delete(key) }

// largeValue is the size in bytes from which a value is not copied.
const largeValue = 8 << 10

// Get has a small value copied, which costs less than a transaction; a large one is looked
// at where it is.
func (s *cairnStore) Get(key []byte, see func([]byte) error) error {
	if !s.small.Load() {
		return s.getLarge(key, see)
	}
	buf, _ := s.bufs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer s.bufs.Put(buf)
	value, err := s.db.GetTo(key, *buf)
	if err != nil {
		return cairnError(err)
	}
	*buf = value
	s.note(value)
	return see(value)
}

func (s *cairnStore) getLarge(key []byte, see func([]byte) error) error {
	return s.View(func(r Reader) error {
		return r.Get(key, func(value []byte) error {
			s.note(value)
			return see(value)
		})
	})
}

func (s *cairnStore) note(value []byte) {
	if small := len(value) < largeValue; small != s.small.Load() {
		s.small.Store(small)
	}
}

func (s *cairnStore) PutBatch(pairs Pairs) (string, error) {
	b := s.spare.take(cairn.NewBatch)
	size := addAll(pairs, b.Put)
	err := s.db.Write(b)
	b.Reset()
	s.spare.give(b, size)
	return "", err
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

func (s *cairnStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	see = limited(n, see)
	return ended(s.db.View(func(tx *cairn.Tx) error {
		for key, value := range tx.Scan(cairn.Range{Low: from}) {
			if err := see(key, value); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Settle: CompactionDebt is zero when background work has nothing to do.
func (s *cairnStore) Settle() (time.Time, error) {
	return settle(func() (bool, error) {
		stats := s.db.Stats()
		return stats.CompactionDebt == 0, stats.BackgroundError
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
