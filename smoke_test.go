package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cairndb/cairn"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if err := db.Put(fmt.Appendf(nil, "key%04d", i), fmt.Appendf(nil, "value%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		t.Helper()
		for i := range 1000 {
			v, err := db.Get(fmt.Appendf(nil, "key%04d", i))
			if err != nil || !bytes.Equal(v, fmt.Appendf(nil, "value%d", i)) {
				t.Fatal(i, string(v), err)
			}
		}
		n := 0
		err := db.View(func(tx *cairn.Tx) error {
			for k, v := range tx.Scan(cairn.Range{}) {
				if string(k) != fmt.Sprintf("key%04d", n) || string(v) != fmt.Sprintf("value%d", n) {
					t.Fatal(n, string(k), string(v))
				}
				n++
			}
			for k := range tx.ScanBackward(cairn.Range{}) {
				n--
				if string(k) != fmt.Sprintf("key%04d", n) {
					t.Fatal(n, string(k))
				}
			}
			return nil
		})
		if err != nil || n != 0 {
			t.Fatal(n, err)
		}
	}
	check()
	if _, err := db.Get([]byte("nope")); !errors.Is(err, cairn.ErrNotFound) {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = cairn.Open(dir, nil); err != nil {
		t.Fatal(err)
	}
	check()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
