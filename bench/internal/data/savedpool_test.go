package data

import (
	"bytes"
	"os"
	"testing"
)

// A pool that was saved is read, and is the same; one that is not there, or was cut, is made.
func TestSavedPool(t *testing.T) {
	dir := t.TempDir()
	UsePools(dir)
	defer UsePools("")
	want := makePool(7)
	SavePool(dir, 7)
	if !bytes.Equal(NewSource(7).pool, want) {
		t.Error("the pool that was saved is another")
	}
	marked := append([]byte("mark"), want[4:]...)
	if err := os.WriteFile(poolFile(dir, 7), marked, 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(NewSource(7).pool, marked) {
		t.Error("the pool was not read")
	}
	if err := os.Truncate(poolFile(dir, 7), PoolBytes-1); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(NewSource(7).pool, want) || !bytes.Equal(NewSource(8).pool, makePool(8)) {
		t.Error("a pool that was cut or not saved is another than the seed's")
	}
}
