package cairn_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cairndb/cairn"
)

// mapsOf counts the mappings that this process has of log files below a directory.
func mapsOf(t *testing.T, dir string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	check(t, err)
	n := 0
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, dir) && strings.Contains(line, ".log") {
			n++
		}
	}
	return n
}

// beside opens a store to write, relaxed, and again to read.
func beside(t *testing.T, dir string, reader cairn.Options) (w, r *cairn.DB) {
	t.Helper()
	w, err := cairn.Open(dir, &cairn.Options{Durability: cairn.Relaxed, Memory: 1 << 30})
	check(t, err)
	t.Cleanup(func() { w.Close() })
	put(t, w, "first", "1")
	reader.ReadOnly = true
	r, err = cairn.Open(dir, &reader)
	check(t, err)
	t.Cleanup(func() { r.Close() })
	return w, r
}

// TestReaderOfMappedLog: a reader accounts for what of the log its memtables may come to hold, keeps what
// transactions have got, and has nothing of the log any more when it is closed.
func TestReaderOfMappedLog(t *testing.T) {
	dir := t.TempDir()
	w, r := beside(t, dir, cairn.Options{Memory: 512 << 20})
	value := strings.Repeat("v", 500_000)
	for i := range 60 {
		for _, v := range []string{"s", value} {
			key := fmt.Sprintf("k%d/%d", i, len(v))
			put(t, w, key, v)
			if got, err := r.Get([]byte(key)); err != nil || string(got) != v {
				t.Fatalf("%s: %d bytes, %v", key, len(got), err)
			}
		}
	}
	if wrote, read := w.Stats(), r.Stats(); read.LogBytes < wrote.LogBytes || read.LogBytes > 2*wrote.LogBytes || read.Memtables < read.LogBytes {
		t.Errorf("the reader has a log of %d bytes and memtables of %d, the writer a log of %d", read.LogBytes, read.Memtables, wrote.LogBytes)
	}
	if mapsOf(t, dir) < 2 {
		t.Error("the reader has not mapped the log")
	}
	tx, err := r.Begin(false)
	check(t, err)
	defer tx.Rollback()
	got, err := tx.Get([]byte("k7/500000"))
	check(t, err)
	if n := r.Stats().HeapCopies; n > 0 {
		t.Errorf("%d values were copied", n)
	}
	check(t, w.Close())
	if string(got) != value || string(mustGet(t, r, "k59/500000")) != value {
		t.Error("values are not what they were")
	}
	check(t, tx.Rollback())
	check(t, r.Close())
	if n := mapsOf(t, dir); n != 0 {
		t.Errorf("%d mappings of the log of a store that is closed", n)
	}
}

func mustGet(t *testing.T, db *cairn.DB, key string) []byte {
	t.Helper()
	v, err := db.Get([]byte(key))
	check(t, err)
	return v
}

// TestLostMemory: where the system has lost pages of a mapped log scans end with an error; they ended with a panic.
func TestLostMemory(t *testing.T) {
	dir := t.TempDir()
	w, r := beside(t, dir, cairn.Options{})
	for i := range 1000 {
		put(t, w, fmt.Sprintf("a key that no order holds as a whole %d", i), "small")
	}
	for _, db := range []*cairn.DB{w, r} { // which puts them in order
		check(t, db.View(func(tx *cairn.Tx) error { drain(tx.Keys(cairn.Range{})); return nil }))
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	check(t, err)
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		check(t, err)
		_, err = f.WriteAt(make([]byte, 64<<10), 4096)
		check(t, errors.Join(err, f.Close()))
	}
	for _, db := range []*cairn.DB{w, r} {
		for what, scan := range map[string]func(tx *cairn.Tx) error{
			"Keys":         func(tx *cairn.Tx) error { drain(tx.Keys(cairn.Range{})); return nil },
			"Scan":         func(tx *cairn.Tx) error { drain2(tx.Scan(cairn.Range{})); return nil },
			"ScanBackward": func(tx *cairn.Tx) error { drain2(tx.ScanBackward(cairn.Range{})); return nil },
			"Iter": func(tx *cairn.Tx) error {
				it := tx.Iter(cairn.Range{})
				for ok := it.First(); ok; ok = it.Next() {
					if it.Key() == nil {
						t.Error("it stands on no key")
					}
				}
				if err := it.Err(); err != nil {
					if _, vErr := it.Value(); it.Valid() || it.Key() != nil || !errors.Is(vErr, cairn.ErrCorrupt) || it.First() || it.Seek(nil) || it.Prev() {
						t.Errorf("after %v it goes on, or its value's error is %v", err, vErr)
					}
				}
				return it.Close()
			},
		} {
			err := db.View(scan)
			lost := db == w || strconv.IntSize == 64 // else the reader has a copy
			if err != nil && !(lost && errors.Is(err, cairn.ErrCorrupt)) || err == nil && lost && (what == "Keys" || what == "Iter") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if v, err := db.Get([]byte("a key that no order holds as a whole 7")); err == nil && string(v) != "small" {
			t.Errorf("a value of %q", v)
		}
	}
}

func drain(seq func(func([]byte) bool)) {
	seq(func([]byte) bool { return true })
}

func drain2(seq func(func(k, v []byte) bool)) {
	seq(func(k, v []byte) bool { return true })
}
