package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairndb/cairn"
)

// TestForeignFilesAreLeftAlone: Open removed whatever had a name like a leftover of
// its own, a text called 000001.log included.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, db, "a", "1")
	check(t, db.Close())
	text := []byte("my own precious text")
	foreign := []string{"000001.log", "000777.sst", "MANIFEST-000888", "000123.tmp", "notes.txt", "RESERVE"}
	for _, name := range foreign {
		check(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	// What a crash may leave of a file of ours: nothing, or a beginning not written yet.
	leftovers := map[string][]byte{"000991.sst": nil, "000992.sst": make([]byte, 4096), "000993.log": []byte("cairnLO\x00")}
	for name, data := range leftovers {
		check(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	for range 2 {
		db, err = cairn.Open(dir, nil)
		check(t, err)
		put(t, db, "b", "2")
		check(t, db.Close())
	}
	for _, name := range foreign {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != string(text) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name := range leftovers {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}

// TestForeignNumbers: the number of a file that something else had made, however great, was
// taken for one that the store had reached: log segments got numbers that no manifest can
// hold, and no Open could read the one that was written.
func TestForeignNumbers(t *testing.T) {
	for _, name := range []string{"20250131120000.log", "4294967293.sst", "4294967295.tmp", "MANIFEST-281474976710655", "2147483000.sst"} {
		dir := t.TempDir()
		db, err := cairn.Open(dir, nil)
		check(t, err)
		put(t, db, "a", "1")
		killed := copyLive(t, dir)
		check(t, db.Close())
		for _, dir := range []string{dir, killed} {
			check(t, os.WriteFile(filepath.Join(dir, name), []byte("my own text"), 0o644))
			for i := range 3 {
				if i == 2 {
					check(t, os.Remove(filepath.Join(dir, name)))
				}
				db, err := cairn.Open(dir, nil)
				if err != nil {
					t.Fatalf("beside %s: %v", name, err)
				}
				wantValue(t, db, "a", "1")
				put(t, db, "b", "2")
				check(t, db.Close())
			}
		}
	}
}

// TestForeignLock: a file called LOCK with something in it was written over.
func TestForeignLock(t *testing.T) {
	for text, ours := range map[string]bool{
		"": true, "12": true, "4711 host 2026-01-02T03:04:05Z\n": true, "\x00\x00\x00": true, "4711 host 2026-01-02T03:04:05Z\n6:07Z\n": true,
		"4711 ho": true, "\x0012 host 2026-01-\x00": true,
		"my own text": false, "{}": false, "4711\n": false, "9 lives of a cat, and other notes\n": false,
		"1: one\n2: more\n": false, "9 lives of a cat": false, " 4711 host": false, "\n": false, "0 host 2026-01-02T03:04:05Z\n": false, "12.5": false,
	} {
		dir := t.TempDir()
		name := filepath.Join(dir, "LOCK")
		check(t, os.WriteFile(name, []byte(text), 0o644))
		db, err := cairn.Open(dir, nil)
		if err == nil {
			check(t, db.Close())
		}
		if (err == nil) != ours || !ours && !errors.Is(err, fs.ErrExist) {
			t.Errorf("LOCK holds %q: %v", text, err)
		}
		if got, err := os.ReadFile(name); !ours && string(got) != text {
			t.Errorf("LOCK holds %q, %v; it held %q", got, err, text)
		}
	}
}

// TestNoStoreBesideForeignFiles: a directory without CURRENT but with files named
// like tables or log segments is no place for a new store: CURRENT may be lost. (Of a
// log segment only what stands behind its header counts: see docs/format/manifest.md.)
func TestNoStoreBesideForeignFiles(t *testing.T) {
	text := bytes.Repeat([]byte("text"), 20)
	for _, name := range []string{"000001.log", "000001.sst"} {
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
		db, err := cairn.Open(dir, nil)
		if !errors.Is(err, cairn.ErrCorrupt) {
			t.Errorf("beside %s: %v", name, err)
			if err == nil {
				db.Close()
			}
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != string(text) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestLostCurrentAndDamagedLog: with CURRENT gone and the header of the log damaged
// Open took the store for one that had never been finished, and began a new one.
func TestLostCurrentAndDamagedLog(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	put(t, db, "a", "1")
	copied := copyLive(t, dir)
	check(t, db.Close())
	check(t, os.Remove(filepath.Join(copied, "CURRENT")))
	logs, _ := filepath.Glob(filepath.Join(copied, "*.log"))
	for _, name := range logs {
		data, err := os.ReadFile(name)
		check(t, err)
		if len(data) > 20 { // else a segment that is being made
			data[20] ^= 1
		}
		check(t, os.WriteFile(name, data, 0o644))
	}
	if db, err := cairn.Open(copied, nil); !errors.Is(err, cairn.ErrCorrupt) {
		t.Errorf("opened: %v", err)
		if err == nil {
			db.Close()
		}
	}
	for _, name := range logs {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// TestForeignThingsLikeLogs: what is no file, or a large one of somebody else, has nothing to do with the log, though
// it is called like a part of it and the store was not closed.
func TestForeignThingsLikeLogs(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	defer db.Close()
	put(t, db, "a", "1")
	for what, lay := range map[string]func(name string) error{
		"a directory": func(name string) error { return os.Mkdir(name, 0o755) },
		"a large file": func(name string) error {
			if err := os.WriteFile(name, []byte("my own text"), 0o644); err != nil {
				return err
			}
			return os.Truncate(name, 2<<30)
		},
	} {
		killed := copyLive(t, dir)
		name := filepath.Join(killed, "20250131.log")
		check(t, lay(name))
		for _, readOnly := range []bool{true, false} {
			db, err := cairn.Open(killed, &cairn.Options{ReadOnly: readOnly})
			if err != nil {
				t.Fatalf("beside %s, read only %v: %v", what, readOnly, err)
			}
			wantValue(t, db, "a", "1")
			check(t, db.Close())
		}
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestForeignNamesOfSegmentsToCome: files and links under names that the log is about to reach, made while the store is
// open, stay as they are, also where a segment's file is to be used again: it was renamed over a link that led nowhere,
// and what was recognised as a file of somebody else's was removed.
func TestForeignNamesOfSegmentsToCome(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, &cairn.Options{Memory: 2 << 20})
	check(t, err)
	value, failed := make([]byte, 4000), 0
	write := func() {
		for i := range 1000 {
			if db.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), value) != nil {
				failed++
			}
		}
	}
	write()
	last := 0
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		n := 0
		if fmt.Sscanf(e.Name(), "%d.log", &n); n > last {
			last = n
		}
	}
	texts, links := []string{}, []string{}
	for n := last + 5; n < last+40; n++ {
		name := filepath.Join(dir, fmt.Sprintf("%06d.log", n))
		if n%2 == 0 && os.Symlink(filepath.Join(dir, "nowhere"), name) == nil {
			links = append(links, name)
		} else {
			check(t, os.WriteFile(name, []byte("my own text"), 0o644))
			texts = append(texts, name)
		}
	}
	write()
	for _, name := range texts {
		if got, err := os.ReadFile(name); string(got) != "my own text" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range links {
		if _, err := os.Readlink(name); err != nil {
			t.Errorf("a link has gone: %v", err)
		}
	}
	if failed == 0 {
		t.Error("no name was in the way")
	}
	check(t, db.Close())
}
