package harness

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLeftoversOfKilledHarnessesAreRemovedAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	make := func(name string, files ...string) string {
		for _, f := range append(files, "") {
			path := filepath.Join(dir, name, f)
			if f == "" {
				os.MkdirAll(path, 0o755)
				continue
			}
			os.MkdirAll(filepath.Dir(path), 0o755)
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return filepath.Join(dir, name)
	}
	killed := make("cairn-bench-1", ownerMark, "store/data")
	unmarked := make("cairn-bench-2", "store/data")
	foreign := make("photos", ownerMark)
	living, release, err := makeRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	root, releaseSecond, err := makeRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	for path, want := range map[string]bool{killed: false, unmarked: true, foreign: true, living: true, root: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	release()
	removeLeftovers(dir)
	if _, err := os.Stat(living); err == nil {
		t.Error("what an ended harness left is still there")
	}
}
