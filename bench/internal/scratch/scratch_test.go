package scratch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Tests(m.Run)) }

func TestLeftoversOfTheKilledAreRemovedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	lay := func(name string, files ...string) string {
		for _, f := range files {
			path := filepath.Join(dir, name, f)
			os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, name)
	}
	killed := lay("cairn-bench-1", mark, "store/data")
	unmarked := lay("cairn-bench-2", "store/data")
	foreign := lay("photos", mark)
	beginning := lay("cairn-bench-3", newMark)
	empty := filepath.Join(dir, "cairn-bench-5")
	os.Mkdir(empty, 0o755)
	early := lay("cairn-bench-4", newMark)
	past := time.Now().Add(-2 * unlockedFor)
	for _, path := range []string{filepath.Join(early, newMark), empty, unmarked} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	living, release, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, releaseSecond, err := Make(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	for path, want := range map[string]bool{killed: false, unmarked: true, foreign: true, beginning: true, early: false, empty: false, living: true, root: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	release()
	removeLeftovers(dir)
	if _, err := os.Stat(living); err == nil {
		t.Error("what an ended owner left is still there")
	}
}
