package workload

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A store that is open removes files while its size is taken.
func TestDiskUseOfAChangingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stays"), make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, name := range []string{"a", "b", "c", "d"} {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Error(err)
					return
				}
				if err := os.Remove(path); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 3000 {
		if apparent, _, err := diskUse(dir); err != nil || apparent != 1000 {
			t.Errorf("%d bytes, %v", apparent, err)
			break
		}
	}
	close(done)
	all.Wait()
	if _, _, err := diskUse(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there has a size")
	}
}
