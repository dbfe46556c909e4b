package engine

import (
	"errors"
	"io"
	"log"

	"github.com/akrylysov/pogreb"
)

func init() {
	Register(Driver{
		Info: Info{
			Name:   "pogreb",
			Title:  "hash index on disk over a log",
			Module: "github.com/akrylysov/pogreb",
			Cannot: map[Ability]string{
				CanOrder:     "a hash index has no order",
				CanBatch:     "pogreb has no batches: every put is a commit of its own",
				CanView:      "pogreb has no read transactions",
				CanKeys:      "its iterator reads every value with its key",
				CanScan:      "a hash index has no order",
				CanProcesses: "refuses to open beside another process, and has no read-only mode",
				CanMemory:    "maps its files: how much of them is in memory is the kernel's affair",
				CanSettle:    "nothing runs in the background unless it is asked to",
			},
		},
		Settings: pogrebSettings,
		Open:     openPogreb,
	})
	pogreb.SetLogger(log.New(io.Discard, "", 0))
}

func pogrebSettings(opts Options) []Setting {
	set := []Setting{{"logger off", "the default prints to stderr"}}
	if opts.Sync {
		set = append(set, Setting{"Options.BackgroundSyncInterval = -1", "sync on: a sync after every write; the default never syncs"})
	}
	return set
}

type pogrebStore struct{ db *pogreb.DB }

func openPogreb(dir string, opts Options) (Store, error) {
	o := &pogreb.Options{}
	if opts.Sync {
		o.BackgroundSyncInterval = -1
	}
	db, err := pogreb.Open(dir, o)
	if err != nil && lockRefused(err, "database is locked") {
		return nil, busy(err)
	}
	if err != nil {
		return nil, err
	}
	return pogrebStore{db}, nil
}

func (s pogrebStore) Close() error                { return s.db.Close() }
func (s pogrebStore) Put(key, value []byte) error { return s.db.Put(key, value) }
func (s pogrebStore) Delete(key []byte) error     { return s.db.Delete(key) }

func (s pogrebStore) Get(key []byte, see func([]byte) error) error {
	value, err := s.db.Get(key)
	if err != nil {
		return err
	}
	if value == nil {
		return ErrNotFound
	}
	return see(value)
}

func (s pogrebStore) Pairs(see func(key, value []byte) error) error {
	it := s.db.Items()
	for {
		key, value, err := it.Next()
		if errors.Is(err, pogreb.ErrIterationDone) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := see(key, value); err != nil {
			return err
		}
	}
}
