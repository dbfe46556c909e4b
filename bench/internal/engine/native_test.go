package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// natives are the rows of C libraries this program has.
func natives(t *testing.T, test func(t *testing.T, d Driver)) {
	for _, d := range All() {
		if !d.Info.Native {
			continue
		}
		t.Run(d.Info.Name, func(t *testing.T) {
			if d.Info.Absent != "" {
				t.Skip(d.Info.Absent)
			}
			test(t, d)
		})
	}
}

func openTest(t *testing.T, d Driver, opts Options) Store {
	t.Helper()
	s, err := d.Open(t.TempDir(), opts)
	check(t, err)
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func TestNativeRowsAreThere(t *testing.T) {
	for _, name := range []string{"lmdb", "leveldb", "rocksdb", "tokyo-hash", "tokyo-btree"} {
		d, err := Find(name)
		if err != nil || !d.Info.Native {
			t.Errorf("%s: %v, native: %v", name, err, d.Info.Native)
		}
		if (d.Info.Absent == "") != (d.Open != nil) {
			t.Errorf("%s: absent %q, but can be opened: %v", name, d.Info.Absent, d.Open != nil)
		}
	}
}

// What the headers of LevelDB and RocksDB recommend is done, and is said among their settings:
// a table of the one, and the options of the other, name the filter.
func TestNativeRowsHaveBloomFilters(t *testing.T) {
	names := map[string]string{"leveldb": "filter.leveldb.BuiltinBloomFilter2", "rocksdb": "filter_policy=bloomfilter"}
	natives(t, func(t *testing.T, d Driver) {
		if names[d.Info.Name] == "" {
			return // recommends none
		}
		for _, opts := range []Options{{}, {Memory: 64 << 20}} {
			if !slices.ContainsFunc(d.Settings(opts), func(s Setting) bool { return strings.Contains(s.Option, "filter_policy = ") }) {
				t.Error("is not told among the settings")
			}
			dir := t.TempDir()
			for range 2 { // the second opening makes a table of the log
				s, err := d.Open(dir, opts)
				check(t, err)
				check(t, s.Put(testKey(1), testValue(1)))
				check(t, s.Close())
			}
			if !anyFileHas(t, dir, names[d.Info.Name]) {
				t.Errorf("%+v: no file names %s", opts, names[d.Info.Name])
			}
		}
	})
}

func anyFileHas(t *testing.T, dir, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	check(t, err)
	return slices.ContainsFunc(files, func(name string) bool {
		content, err := os.ReadFile(name)
		check(t, err)
		return bytes.Contains(content, []byte(text))
	})
}

func TestLibrarySaysItsVersion(t *testing.T) {
	version := regexp.MustCompile(`^lib[a-z]+ \d+\.\d+`)
	natives(t, func(t *testing.T, d Driver) {
		if got := d.Library(); !version.MatchString(got) {
			t.Errorf("%q", got)
		}
	})
}

func TestAbsentRowGivesItsReason(t *testing.T) {
	defer delete(drivers, "absent-test")
	defer func(before []string) { rows = before }(rows)
	registerAbsent(Info{Name: "absent-test"}, "no such package", "native_test")
	if d, err := Find("absent-test"); err != nil || d.Info.Absent != "no such package" || d.Version() != "" {
		t.Errorf("%+v, %v", d.Info, err)
	}
}

func TestNativeScan(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		s := openTest(t, d, Options{})
		scanner, ok := s.(Scanner)
		if ok != d.Info.Can(CanScan) {
			t.Fatalf("the driver scans: %v, Info says so: %v", ok, d.Info.Can(CanScan))
		}
		if !ok {
			return
		}
		for i := range 100 {
			check(t, s.Put(testKey(i), wanted(i)))
		}
		for _, c := range []struct {
			from             []byte
			n, first, length int
		}{
			{nil, 10, 0, 10}, {testKey(20), 10, 20, 10}, {[]byte("key00020x"), 3, 21, 3}, {testKey(95), 10, 95, 5},
			{[]byte("kez"), 5, 0, 0}, {testKey(3), 1, 3, 1}, {testKey(3), 0, 0, 0},
		} {
			i := c.first
			check(t, scanner.Scan(c.from, c.n, func(k, v []byte) error {
				if !bytes.Equal(k, testKey(i)) || !bytes.Equal(v, wanted(i)) {
					t.Errorf("from %q: place %d is %q", c.from, i-c.first, k)
				}
				i++
				return nil
			}))
			if i-c.first != c.length {
				t.Errorf("from %q, n %d: %d pairs, want %d", c.from, c.n, i-c.first, c.length)
			}
		}
		if err := scanner.Scan(nil, 5, func(_, _ []byte) error { return errSeen }); err != errSeen {
			t.Errorf("see's error comes back as %v", err)
		}
	})
}

func TestRocksDBDeletesWithoutSync(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		s := openTest(t, d, Options{Sync: true})
		lax, ok := s.(UnsyncedDeleter)
		if ok != (d.Info.Name == "rocksdb") {
			t.Fatalf("deletes without a sync: %v", ok)
		}
		if !ok {
			return
		}
		check(t, s.Put(testKey(1), wanted(1)))
		check(t, lax.DeleteUnsynced(testKey(1)))
		if err := s.Get(testKey(1), func([]byte) error { return nil }); !errors.Is(err, ErrNotFound) {
			t.Errorf("after its delete: %v", err)
		}
	})
}

func TestEmptyValues(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		s := openTest(t, d, Options{})
		err := s.Put(testKey(1), nil)
		if d.Info.Name == "lmdb" && err != nil {
			return // refused, see errLMDBEmpty
		}
		check(t, err)
		check(t, s.Get(testKey(1), func(v []byte) error {
			if len(v) != 0 {
				t.Errorf("%d bytes", len(v))
			}
			return nil
		}))
	})
}

// Buffers that are too small for a value, or of its very size, must not cut it.
func TestValuesOfAllSizes(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		s := openTest(t, d, Options{})
		sizes := []int{1, 100, 100, 101, 102, 50, 70_000, 70_000, 1_000_000, 3}
		for i, n := range sizes {
			check(t, s.Put(testKey(i), bytes.Repeat([]byte{byte(i)}, n)))
		}
		for i, n := range sizes {
			check(t, s.Get(testKey(i), func(v []byte) error {
				if !bytes.Equal(v, bytes.Repeat([]byte{byte(i)}, n)) {
					t.Errorf("value of %d bytes comes back with %d", n, len(v))
				}
				return nil
			}))
		}
	})
}

// Goroutines share a store where Info says so: each reads back what it wrote,
// others walk and scan meanwhile.
func TestNativeStoresAreShared(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		if !d.Info.Can(CanShare) {
			t.Skip(d.Info.Cannot[CanShare])
		}
		for _, opts := range []Options{{Sync: true}, {}} {
			s := openTest(t, d, opts)
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					if err := shareOne(s, g); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
	})
}

func shareOne(s Store, g int) error {
	for i := g * 100; i < g*100+25; i++ {
		if err := s.Put(testKey(i), testValue(i)); err != nil {
			return err
		}
		err := s.Get(testKey(i), func(v []byte) error { return same(testKey(i), v) })
		if err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
		if scanner, ok := s.(Scanner); ok && i%5 == 0 {
			if err := scanner.Scan(testKey(i), 20, same); err != nil {
				return err
			}
		}
		if i%3 == 0 {
			if err := s.Delete(testKey(i)); err != nil {
				return err
			}
		}
	}
	return s.(PairWalker).Pairs(same)
}

// same compares a value with what shareOne writes for its key.
func same(key, value []byte) error {
	var i int
	fmt.Sscanf(string(key), "key%d", &i)
	if !bytes.Equal(value, testValue(i)) {
		return fmt.Errorf("%s has a wrong value", key)
	}
	return nil
}

func TestMemoryIsTaken(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		if !d.Info.Can(CanMemory) {
			return
		}
		if len(d.Settings(Options{Memory: 8 << 20})) <= len(d.Settings(Options{})) {
			t.Error("no setting says what the memory is used for")
		}
		exercise(t, d, Options{Memory: 8 << 20})
	})
}

func TestMissingKeyIsNotFound(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		s := openTest(t, d, Options{})
		if err := s.Get([]byte("nosuch"), nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		v, ok := s.(Viewer)
		if ok != d.Info.Can(CanView) {
			t.Errorf("the driver views: %v, Info says so: %v", ok, d.Info.Can(CanView))
		}
		if !ok {
			return
		}
		check(t, s.Put([]byte("k"), []byte("old")))
		check(t, v.View(func(r Reader) error {
			check(t, s.Put([]byte("k"), []byte("new")))
			return r.Get([]byte("k"), func(v []byte) error {
				if string(v) != "old" {
					t.Errorf("a view shows %q, which was put after it began", v)
				}
				return nil
			})
		}))
	})
}
