package cairn_test

import (
	"bytes"
	"errors"
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
	foreign := []string{"000001.log", "000777.sst", "MANIFEST-000888", "000123.tmp", "notes.txt"}
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
