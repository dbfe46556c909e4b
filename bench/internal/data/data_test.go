package data

import (
	"bytes"
	"testing"
)

// The figures the laboratory promises about its data. Whoever changes the
// generator meets this test.
func TestCompressibilityIsThatOfRecords(t *testing.T) {
	for _, seed := range []uint64{1, 2, 77} {
		c := NewSource(seed).Compressibility(4096)
		t.Logf("seed %d: %+v", seed, c)
		within(t, "snappy in 4 KiB blocks", c.Snappy4K, 1.5, 1.7)
		within(t, "snappy in 32 KiB blocks", c.Snappy32K, 1.75, 1.95)
		within(t, "values of 4096 B", c.Values, 1.5, 1.75)
	}
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: ratio %.3f, promised %.2f to %.2f", what, got, low, high)
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	a, b, other := NewSource(1), NewSource(1), NewSource(2)
	if !bytes.Equal(a.pool, b.pool) {
		t.Error("the pool of a seed changes from one run to the next")
	}
	if bytes.Equal(a.pool, other.pool) {
		t.Error("two seeds give the same pool")
	}
}

func TestValuesDiffer(t *testing.T) {
	s := NewSource(1)
	seen := map[string]bool{}
	for id := range uint64(2000) {
		for version := range uint64(3) {
			seen[string(s.Value(id, version, 64))] = true
		}
		if bytes.Equal(s.Value(id, 0, 64), s.Value(id, 1, 64)) {
			t.Errorf("id %d: two versions are the same", id)
		}
	}
	// 6000 windows into 8 Mi places: two are expected to meet by chance.
	if len(seen) < 5990 {
		t.Errorf("%d different values of 6000", len(seen))
	}
}

func TestValueSizes(t *testing.T) {
	s := NewSource(1)
	for _, size := range []int{0, 1, 256, 4096, MaxValueBytes} {
		if v := s.Value(9, 1, size); len(v) != size || cap(v) != size {
			t.Errorf("size %d: len %d cap %d", size, len(v), cap(v))
		}
	}
}

func TestKeysAreOrderedAndParse(t *testing.T) {
	keys := NewKeys(1000)
	for i := range 1000 {
		if id, ok := ParseKey(keys.At(i)); !ok || id != uint64(i) {
			t.Fatalf("key %d parses as %d, %v", i, id, ok)
		}
		if i > 0 && bytes.Compare(keys.At(i-1), keys.At(i)) >= 0 {
			t.Fatalf("key %d is not above key %d", i, i-1)
		}
	}
	for _, bad := range []string{"", "12", "000000000000000x", "00000000000000000"} {
		if _, ok := ParseKey([]byte(bad)); ok {
			t.Errorf("%q parses as a key", bad)
		}
	}
}

func TestOrderIsAPermutation(t *testing.T) {
	a, b := Order(500, 1, 1), Order(500, 1, 2)
	seen := make([]bool, 500)
	same := 0
	for i, v := range a {
		if seen[v] {
			t.Fatalf("%d twice", v)
		}
		seen[v] = true
		if b[i] == v {
			same++
		}
	}
	if same > 50 {
		t.Errorf("two purposes share %d of 500 places", same)
	}
}
