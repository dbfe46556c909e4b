package workload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cairndb/cairn/bench/internal/data"
)

// Values are made once for a cell, and anew for every seed and file.
func TestValuesAreMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.jsonl")
	if err := os.WriteFile(path, []byte("{\"a\":1}\n{\"a\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := Params{N: 2, Seed: 7, Data: &data.File{Path: path, Key: "a"}}
	for i, p := range []Params{{N: 2, Seed: 7}, {N: 2, Seed: 8}, own, {N: 2, Seed: 7}} {
		first, keys := dataOf(p, p.N)
		again, _ := dataOf(p, p.N)
		if first != again {
			t.Errorf("%d: values of the same cell are made twice", i)
		}
		fresh := data.NewSource(p.Seed)
		made := bytes.Equal(first.Value(1, 0, 5), fresh.Value(1, 0, 5)) && bytes.Equal(keys.At(1), data.NewKeys(2).At(1))
		users := string(first.Value(1, 0, 5)) == `{"a":2}` && string(keys.At(1)) == "2"
		if made == (p.Data != nil) || users != (p.Data != nil) {
			t.Errorf("%d: value %q, key %q", i, first.Value(1, 0, 5), keys.At(1))
		}
	}
}
