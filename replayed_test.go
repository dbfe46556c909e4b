package cairn_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// copyLive copies the directory of an open store: what a kill would leave. Files come
// and go meanwhile, and one may be copied before the manifest names it, so it may take more than one attempt.
func copyLive(t *testing.T, dir string) string {
	t.Helper()
	var err error
	for range 20 {
		copied, before := t.TempDir(), manifests(t, dir)
		if err = os.CopyFS(copied, os.DirFS(dir)); err == nil && maps.Equal(manifests(t, copied), before) {
			return copied
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s changes all the time (%v)", dir, err)
	return ""
}

// manifests returns the manifests in a directory, by their names.
func manifests(t *testing.T, dir string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	check(t, err)
	all := map[string]string{}
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil {
			all[filepath.Base(name)] = string(data)
		}
	}
	return all
}

// TestStatsOfAReplayedLog: opened read-only after an unclean end a store said that
// it had nothing on disk.
func TestStatsOfAReplayedLog(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	for range 100 {
		put(t, db, "key", "value")
	}
	want := db.Stats().LogBytes
	copied := copyLive(t, dir)
	check(t, db.Close())
	db, err = cairn.Open(copied, &cairn.Options{ReadOnly: true})
	check(t, err)
	defer db.Close()
	s := db.Stats()
	if s.LogBytes < want*9/10 || s.LogBytes > want || s.DiskBytes != s.LogBytes {
		t.Errorf("log %d, disk %d bytes; it was written with %d", s.LogBytes, s.DiskBytes, want)
	}
	if s.CompactionDebt != s.LogBytes { // not how many memtables there are
		t.Errorf("%d bytes to be written, where %d of log wait to be flushed", s.CompactionDebt, s.LogBytes)
	}
}
