package block

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestStored: of a block as it is stored both pages are verified, and how they are compressed is told; what is not is
// compressed when it is written again.
func TestStored(t *testing.T) {
	id, text := NewIdentity(base.ID{1}, "1.sst"), bytes.Repeat([]byte("as it comes "), 100)
	const off = 4711
	var kb KeyBuilder
	for i := range 50 {
		kb.Add(fmt.Appendf(nil, "%d is a key", 100+i*7), 0, base.KindPut, len(text)/50)
	}
	keys := kb.Encode(nil)
	form := make([]byte, kb.FormBytes())
	if err := Expand(form, keys); err != nil {
		t.Fatal(err)
	}
	make := func(k, v Codec) ([]byte, int) {
		b := id.AppendPage(nil, PageKeys, off, k, keys)
		return id.AppendPage(b, PageValues, off+int64(len(b)), v, text), len(b)
	}
	for _, c := range []struct {
		keys, values, want Codec
		ok                 bool
	}{{Zstd, Zstd, Zstd, true}, {Zstd, None, Zstd, true}, {None, S2, S2, true}, {None, None, None, true}, {S2, Zstd, 0, false}, {Zstd, S2, 0, false}} {
		b, n := make(c.keys, c.values)
		s := Stored{Keys: View(form)}
		err := s.Set(id, off, b, n)
		if got, ok := s.Codec(); err != nil || ok != c.ok || ok && got != c.want {
			t.Errorf("keys %v, values %v: %v, %v %v", c.keys, c.values, err, got, ok)
		}
		for _, want := range []Codec{None, Zstd} { // what is stored as it is is compressed now
			k, v := c.keys, c.values
			if k == None {
				k = want
			}
			if v == None {
				v = want
			}
			again := id.AppendSum(s.AppendBody(nil, 0, want), 0, off)
			keyBytes := len(again)
			again = id.AppendSum(s.AppendBody(again, 1, want), keyBytes, off+int64(keyBytes))
			if whole, n := make(k, v); n != keyBytes || !bytes.Equal(again, whole) {
				t.Errorf("keys %v, values %v, with %v: another block", c.keys, c.values, want)
			}
		}
	}
	b, n := make(Zstd, Zstd)
	for i := range b {
		b[i] ^= 4
		s := Stored{Keys: View(form)}
		if err, bad := s.Set(id, off, b, n), new(base.CorruptionError); !errors.As(err, &bad) {
			t.Fatalf("byte %d damaged: %v", i, err)
		}
		b[i] ^= 4
	}
	kb.Reset()
	kb.Add([]byte("k"), 0, base.KindPut, 3)
	other := Stored{Keys: View(form)}
	v := id.AppendPage(b[:n:n], PageValues, off+int64(n), None, []byte("abc"))
	if err := other.Set(id, off, v, n); err == nil {
		t.Error("a value page of another size passes")
	}
}
