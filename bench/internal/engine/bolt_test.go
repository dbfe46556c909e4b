package engine

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// To open a store that is there is no commit: its file stays as it is.
func TestABoltStoreIsOpenedAgainWithoutACommit(t *testing.T) {
	for name, file := range map[string]string{"bbolt": "bbolt.db", "boltdb": "bolt.db"} {
		if raceEnabled && name == "boltdb" {
			continue // its pointer arithmetic fails the checks that -race turns on
		}
		d, err := Find(name)
		check(t, err)
		dir := t.TempDir()
		s, err := d.Open(dir, Options{Sync: true})
		check(t, err)
		check(t, s.Put(testKey(3), testValue(3)))
		check(t, s.Close())
		before, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		s, err = d.Open(dir, Options{Sync: true})
		check(t, err)
		check(t, s.Get(testKey(3), func([]byte) error { return nil }))
		check(t, s.Close())
		after, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		if !bytes.Equal(before, after) {
			t.Errorf("%s: a store that was opened and read has another file", name)
		}
	}
}
