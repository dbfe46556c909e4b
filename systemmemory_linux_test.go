//go:build linux && !race

// The race detector takes memory by itself, and ends the process where it gets none.

package cairn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn"
	"golang.org/x/sys/unix"
)

// TestReadsAndCommitsWhereTheSystemGivesLessThanMemory: what pages hold serves for other pages and for memtables where
// the system gives no more (here RLIMIT_DATA), though Memory has room. Gets and scans failed with ENOMEM, always at the
// same row, and commits too, for good.
func TestReadsAndCommitsWhereTheSystemGivesLessThanMemory(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		if got := said(t, child(t, "denied "+durability.String(), t.TempDir())); got != "done" {
			t.Errorf("%v: the child said: %s", durability, got)
		}
	}
}

// TestDefaultMemoryOfALimitedProcess: where Memory is not given it is a quarter of what RLIMIT_DATA allows, at most.
func TestDefaultMemoryOfALimitedProcess(t *testing.T) {
	if got := said(t, child(t, "default of Memory", t.TempDir())); got != "done" {
		t.Errorf("the child said: %s", got)
	}
}

func init() {
	addChild("default of Memory", func(dir string) error {
		const more = 256 << 20 // than the process has
		if err := denyMemory(more); err != nil {
			return err
		}
		db, err := cairn.Open(dir, nil)
		if err != nil {
			return err
		}
		defer db.Close()
		if limit := db.Stats().MemoryLimit; limit > more {
			return fmt.Errorf("the default is %d bytes", limit)
		}
		return nil
	})
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		addChild("denied "+durability.String(), func(dir string) error { return useDenied(dir, durability) })
	}
}

const deniedPairs = 5_000 // of 16 KB

func deniedKey(i int) []byte { return fmt.Appendf(nil, "key%06d", i) }

// useDenied reads and writes a store of 80 MB in a process that gets 40 MiB more from the system, with a gigabyte of Memory.
func useDenied(dir string, durability cairn.Durability) error {
	opts := &cairn.Options{Memory: 32 << 20, Durability: cairn.Relaxed, Compression: cairn.None}
	db, err := cairn.Open(dir, opts)
	if err != nil {
		return err
	}
	random, v := rand.NewChaCha8([32]byte{}), make([]byte, 16_000)
	for i := range deniedPairs {
		random.Read(v)
		err = errors.Join(err, db.Put(deniedKey(i), v))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	opts.Memory, opts.Durability = 1<<30, durability
	if db, err = cairn.Open(dir, opts); err != nil {
		return err
	}
	defer db.Close()
	if err := denyMemory(40 << 20); err != nil {
		return err
	}
	for range 2 {
		if err := readDenied(db); err != nil {
			return err
		}
		for i := range 1_500 {
			random.Read(v)
			if err := db.Put(deniedKey(i), v); err != nil {
				return fmt.Errorf("put %d: %w", i, err)
			}
		}
	}
	if s := db.Stats(); s.MemoryLimit >= opts.Memory {
		return fmt.Errorf("the limit is %d, as if the system had given it", s.MemoryLimit)
	}
	return nil
}

// readDenied scans and gets, eight goroutines at once.
func readDenied(db *cairn.DB) error {
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for g := range errs {
		wg.Go(func() {
			if g == 0 {
				errs[g] = db.View(func(tx *cairn.Tx) error { drain2(tx.Scan(cairn.Range{})); return tx.Err() })
			}
			for i := g; i < deniedPairs && errs[g] == nil; i += 16 {
				_, errs[g] = db.Get(deniedKey(i * 7919 % deniedPairs))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// denyMemory lets the process have no more than n bytes beside what it has.
func denyMemory(n uint64) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(status), "VmData:")
	var data uint64 // KiB
	if _, err := fmt.Sscan(after, &data); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: data<<10 + n, Max: unix.RLIM_INFINITY})
}
