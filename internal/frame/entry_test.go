package frame

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestEntryGolden fixes the bytes of entries.
func TestEntryGolden(t *testing.T) {
	long := string(bytes.Repeat([]byte("v"), 200))
	for _, c := range []struct {
		kind       base.Kind
		key, value string
		want       string
	}{
		{base.KindPut, "\x00key", "value", "01" + "04" + "05" + "006b6579" + "76616c7565"},
		{base.KindPut, "\x00k", "", "01" + "02" + "00" + "006b"},
		{base.KindPut, "\x00k", long, "01" + "02" + "c801" + "006b" + hex.EncodeToString([]byte(long))},
		{base.KindDelete, "\x00k", "", "00" + "02" + "006b"},
		{base.KindRangeDelete, "\x00a", "\x00b", "02" + "02" + "02" + "0061" + "0062"},
	} {
		got := AppendEntry([]byte("before"), c.kind, []byte(c.key), []byte(c.value))
		if hex.EncodeToString(got[6:]) != c.want {
			t.Errorf("%v %q: %x, want %s", c.kind, c.key, got[6:], c.want)
		}
	}
}

func TestEntryRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for range 2000 {
		kind := base.Kind(r.IntN(3))
		key, value := fill(1+r.IntN(300)), fill(r.IntN(1000))
		if r.IntN(100) == 0 {
			key = fill(base.MaxKeyBytes)
		}
		switch kind {
		case base.KindDelete:
			value = nil
		case base.KindRangeDelete:
			key[0] &= 0x7f
			value = append([]byte{0x80}, value...)
		}
		b := AppendEntry(nil, kind, key, value)
		if len(b) > len(key)+len(value)+MaxEntryHeaderBytes {
			t.Fatalf("%d bytes for a key of %d and a value of %d", len(b), len(key), len(value))
		}
		e, n := DecodeEntry(append(b, "behind"...))
		if n != len(b) || e.Kind != kind || !bytes.Equal(e.Key, key) || !bytes.Equal(e.Value, value) {
			t.Fatalf("%v %x %x became %v %x %x", kind, key, value, e.Kind, e.Key, e.Value)
		}
		if (e.Value == nil) != (kind == base.KindDelete) || cap(e.Key) != len(e.Key) || cap(e.Value) != len(e.Value) {
			t.Fatal("nil-ness or capacities are wrong")
		}
		for range 5 {
			if cut := r.IntN(len(b)); cut < len(b) {
				if _, n := DecodeEntry(b[:cut]); n != 0 {
					t.Fatalf("%d of %d bytes are enough", cut, len(b))
				}
			}
		}
	}
}

func TestMalformedEntries(t *testing.T) {
	for name, b := range map[string][]byte{
		"nothing":           nil,
		"one byte":          {1},
		"unknown kind":      {3, 1, 0, 'k'},
		"empty key":         {1, 0, 0},
		"empty key deleted": {0, 0, 0},
		"key over limit":    append([]byte{0, 0x89, 0x80, 0x04}, make([]byte, 70000)...),
		"value over limit":  append([]byte{1, 1, 0x81, 0x80, 0x80, 0x80, 0x04, 'k'}, make([]byte, 100)...),
		"endless length":    {1, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
		"length cut off":    {1, 0x80},
		"value cut off":     {1, 1, 5, 'k', 'v'},
		"no value length":   {1, 1},
		"range without end": AppendEntry(nil, base.KindRangeDelete, []byte("k"), nil),
		"empty range":       AppendEntry(nil, base.KindRangeDelete, []byte("k"), []byte("k")),
		"range backward":    AppendEntry(nil, base.KindRangeDelete, []byte("k"), []byte("j")),
		"range too far":     AppendEntry(nil, base.KindRangeDelete, []byte("k"), append([]byte("l"), make([]byte, base.MaxKeyBytes)...)),
	} {
		if _, n := DecodeEntry(b); n != 0 {
			t.Errorf("%s: %d bytes decoded", name, n)
		}
		Key(b) // there may be one, but nothing worse
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(AppendEntry(nil, base.KindPut, []byte("\x00key"), []byte("value")))
	f.Add(AppendEntry(nil, base.KindDelete, []byte("\x00key"), nil))
	f.Add(AppendEntry(nil, base.KindRangeDelete, []byte("\x00a"), []byte("\x00b")))
	f.Add([]byte{1, 0x84, 0x00, 0, 'k', 'e', 'y', 'x'})
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			e, n := DecodeEntry(b)
			if n == 0 {
				return
			}
			if n > len(b) || len(e.Key) == 0 {
				t.Fatalf("%d of %d bytes, key %x", n, len(b), e.Key)
			}
			for from := range n {
				key, whole := Key(b[:from]), from >= n-len(e.Value)
				if whole != (key != nil) || whole && !bytes.Equal(key, e.Key) {
					t.Fatalf("the first %d bytes of %d have the key %x, want %x", from, n, key, e.Key)
				}
			}
			again := AppendEntry(nil, e.Kind, e.Key, e.Value)
			e2, n2 := DecodeEntry(again)
			if n2 != len(again) || n2 > n || e2.Kind != e.Kind || !bytes.Equal(e2.Key, e.Key) || !bytes.Equal(e2.Value, e.Value) {
				t.Fatalf("%x became %x", b[:n], again)
			}
			b = b[n:]
		}
	})
}
