package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/scratch"
)

// otherProcess in the environment makes this test program the reader beside a
// writer: it opens the named engine read-only and says how that went.
const otherProcess = "CAIRN_BENCH_OTHER_PROCESS"

func TestMain(m *testing.M) {
	if name := os.Getenv(otherProcess); name != "" {
		fmt.Print(readBeside(name, os.Args[1]))
		os.Exit(0)
	}
	os.Exit(scratch.Tests(m.Run))
}

func readBeside(name, dir string) string {
	patience = 300 * time.Millisecond
	d, err := Find(name)
	if err != nil {
		return err.Error()
	}
	s, err := d.Open(dir, Options{ReadOnly: true})
	if errors.Is(err, ErrBusy) {
		return "busy"
	}
	if err != nil {
		return "open: " + err.Error()
	}
	err = s.Get(testKey(3), func(v []byte) error {
		if !bytes.Equal(v, testValue(3)) {
			return errors.New("a wrong value")
		}
		return nil
	})
	if err != nil {
		return "get: " + err.Error()
	}
	if err := s.Close(); err != nil {
		return "close: " + err.Error()
	}
	return "read"
}

// each runs a test on every driver that has an ability; the others must say why
// they have not, in few words.
func each(t *testing.T, a Ability, fn func(t *testing.T, d Driver)) {
	for _, d := range All() {
		t.Run(d.Info.Name, func(t *testing.T) {
			if d.Info.Absent != "" {
				t.Skip(d.Info.Absent)
			}
			if raceEnabled && d.Info.Name == "boltdb" {
				t.Skip("boltdb's pointer arithmetic fails the checks that -race turns on")
			}
			if why, no := d.Info.Cannot[a]; no {
				if len(why) < 10 || len(why) > 120 {
					t.Errorf("no %s: %q is no reason", a, why)
				}
				t.Skip(why)
			}
			fn(t, d)
		})
	}
}

// fill opens a new store with n keys and closes it when the test ends.
func fill(t *testing.T, d Driver, opts Options, n int) (Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := d.Open(dir, opts)
	check(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	for i := range n {
		check(t, s.Put(testKey(i), testValue(i)))
	}
	return s, dir
}

func TestScan(t *testing.T) {
	each(t, CanScan, func(t *testing.T, d Driver) {
		s, _ := fill(t, d, Options{}, 200)
		check(t, s.Delete(testKey(101)))
		for _, c := range []struct {
			from string
			n    int
			want []int
		}{
			{"key00050", 3, []int{50, 51, 52}},
			{"key00050x", 2, []int{51, 52}},
			{"", 2, []int{0, 1}},
			{"key00100", 3, []int{100, 102, 103}},
			{"key00198", 9, []int{198, 199}},
			{"key00199x", 1, nil},
		} {
			var got []int
			err := s.(Scanner).Scan([]byte(c.from), c.n, func(k, v []byte) error {
				var i int
				fmt.Sscanf(string(k), "key%d", &i)
				if !bytes.Equal(v, testValue(i)) {
					t.Errorf("from %q: key %d has a wrong value", c.from, i)
				}
				got = append(got, i)
				return nil
			})
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%d from %q: %v, %v, want %v", c.n, c.from, got, err, c.want)
			}
		}
		if err := s.(Scanner).Scan(nil, 5, func(k, v []byte) error { return errSeen }); !errors.Is(err, errSeen) {
			t.Errorf("see's error comes back as %v", err)
		}
	})
}

func TestSettle(t *testing.T) {
	each(t, CanSettle, func(t *testing.T, d Driver) {
		s, _ := fill(t, d, Options{}, 3000)
		done := make(chan error, 1)
		begun := time.Now()
		var since time.Time
		go func() {
			var err error
			since, err = s.(Settler).Settle()
			done <- err
		}()
		select {
		case err := <-done:
			check(t, err)
			if since.Before(begun) || time.Since(since) < settledFor {
				t.Errorf("settled since %v after it was asked to, %v before it returned", since.Sub(begun), time.Since(since))
			}
		case <-time.After(30 * time.Second):
			t.Fatal("3,000 small puts are not settled after 30 s")
		}
		check(t, s.Get(testKey(2999), func([]byte) error { return nil }))
	})
}

// Readers and writers at once, each on keys of its own.
func TestShare(t *testing.T) {
	each(t, CanShare, func(t *testing.T, d Driver) {
		if !d.Info.Can(CanGet) {
			t.Skip("a floor only writes")
		}
		s, _ := fill(t, d, Options{}, 400)
		var all sync.WaitGroup
		for g := range 4 {
			all.Add(1)
			go func() {
				defer all.Done()
				for i := g * 100; i < g*100+100; i++ {
					if err := s.Put(testKey(i), testValue(i+5000)); err != nil {
						t.Error(err)
						return
					}
					err := s.Get(testKey(i), func(v []byte) error {
						if !bytes.Equal(v, testValue(i+5000)) {
							return fmt.Errorf("key %d: a wrong value", i)
						}
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		all.Wait()
	})
}

// A bound of memory changes options, says which, and breaks no promise.
func TestMemory(t *testing.T) {
	each(t, CanMemory, func(t *testing.T, d Driver) {
		with := Options{Memory: 16 << 20}
		if slices.Equal(d.Settings(with), d.Settings(Options{})) {
			t.Error("Settings does not say what the bound changes")
		}
		exercise(t, d, with)
	})
}

func TestBoundsReachTheLibraries(t *testing.T) {
	const m = 16 << 20
	if o := pebbleOptions(Options{Memory: m}); o.CacheSize+2*int64(o.MemTableSize) > m {
		t.Errorf("pebble: %d + 2 * %d", o.CacheSize, o.MemTableSize)
	}
	if o := goleveldbOptions(Options{Memory: m}); o.BlockCacheCapacity+2*o.WriteBuffer > m {
		t.Errorf("goleveldb: %d + 2 * %d", o.BlockCacheCapacity, o.WriteBuffer)
	}
	o := badgerOptions("x", Options{Memory: m})
	if o.BlockCacheSize+o.IndexCacheSize+int64(o.NumMemtables+1)*o.MemTableSize > m {
		t.Errorf("badger: %d + %d + %d * %d", o.BlockCacheSize, o.IndexCacheSize, o.NumMemtables+1, o.MemTableSize)
	}
	if o := badgerOptions("x", Options{}); o.MemTableSize != 64<<20 {
		t.Error("badger: without a bound its defaults are changed")
	}
}

// An engine either lets another process read beside a writer or refuses with
// ErrBusy; anything else could not be told from a fault.
func TestReaderInAnotherProcess(t *testing.T) {
	self, err := os.Executable()
	check(t, err)
	for _, d := range All() {
		t.Run(d.Info.Name, func(t *testing.T) {
			if d.Info.Absent != "" || !d.Info.Can(CanDisk) || !d.Info.Can(CanGet) || (raceEnabled && d.Info.Name == "boltdb") {
				t.Skip(d.Info.Absent)
			}
			_, dir := fill(t, d, Options{}, 10)
			cmd := exec.Command(self, dir)
			cmd.Env = append(os.Environ(), otherProcess+"="+d.Info.Name)
			out, err := cmd.Output()
			check(t, err)
			want := "busy"
			if d.Info.Can(CanProcesses) {
				want = "read"
			}
			if string(out) != want {
				t.Errorf("%q, want %q", out, want)
			}
		})
	}
}

// noReadOnly are engines without a read-only mode that one driver could use.
var noReadOnly = []string{"nutsdb", "nutsdb-keys", "pogreb", "leveldb", "tokyo-hash", "tokyo-btree"}

// A read-only open must not change what is there.
func TestReadOnlyAfterClose(t *testing.T) {
	for _, d := range All() {
		if d.Info.Absent != "" || !d.Info.Can(CanDisk) || !d.Info.Can(CanGet) || slices.Contains(noReadOnly, d.Info.Name) || (raceEnabled && d.Info.Name == "boltdb") {
			continue
		}
		t.Run(d.Info.Name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := d.Open(dir, Options{})
			check(t, err)
			check(t, s.Put(testKey(3), testValue(3)))
			check(t, s.Close())
			s, err = d.Open(dir, Options{ReadOnly: true})
			check(t, err)
			check(t, s.Get(testKey(3), func([]byte) error { return nil }))
			if err := s.Put(testKey(4), testValue(4)); err == nil {
				t.Error("a store opened read-only takes a put")
			}
			check(t, s.Close())
		})
	}
}

func TestLockRefused(t *testing.T) {
	if lockRefused(errors.New("the disk is on fire"), "is locked") {
		t.Error("any error counts as a refused lock")
	}
	if !errors.Is(busy(os.ErrExist), ErrBusy) || !strings.Contains(busy(os.ErrExist).Error(), os.ErrExist.Error()) {
		t.Error("busy hides what it wraps")
	}
	if !lockRefused(&os.PathError{Op: "flock", Path: filepath.Join("a", "b"), Err: errors.New("database is locked")}, "is locked") {
		t.Error("a phrase is not found")
	}
}
