package memtable

import (
	"fmt"
	"math"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// TestSlotLayout: what a slot is made of comes out of it again, however large a table is, and of the hash there is
// enough.
func TestSlotLayout(t *testing.T) {
	const hash = 0xFEDCBA9876543210
	for _, c := range []struct {
		n, size   int
		hasOffset bool
	}{
		{1, 0, false}, {1, 1, false}, {1, 2, true}, {1000, 4096, true}, {1000, 4097, true}, {1 << 20, 16 << 20, true},
		{1 << 20, 1 << 30, true}, {1<<26 - 1, 1 << 30, true}, {1 << 26, 1 << 30, false}, {1 << 30, 1 << 30, false},
	} {
		l := layoutFor(c.n, c.size)
		if (l.offMask != 0) != c.hasOffset {
			t.Errorf("%d records over %d bytes: slots have an offset: %v", c.n, c.size, !c.hasOffset)
		}
		rec, off := uint32(c.n), uint32(max(c.size, 1)-1)
		s := l.of(hash, off, rec)
		if s == 0 || l.record(s) != rec || c.hasOffset && l.offset(s) != off {
			t.Errorf("%d records over %d bytes: slot %x leads to record %d at %d", c.n, c.size, s, l.record(s), l.offset(s))
		}
		if !l.mayBe(s, hash) {
			t.Errorf("%d records over %d bytes: slot %x is not its key's", c.n, c.size, s)
		}
		for bit := 64 - leastHash; bit < 64; bit++ {
			if l.mayBe(s, hash^1<<bit) {
				t.Errorf("%d records over %d bytes: bit %d of the hash is not looked at", c.n, c.size, bit)
			}
		}
	}
}

// TestSameHash: keys that slots cannot tell apart are told apart by their records, with and without offsets in slots.
func TestSameHash(t *testing.T) {
	const n = 100
	var buf []byte
	var offs []int
	for i := range 2 * n { // each twice
		offs = append(offs, len(buf))
		buf = frame.AppendEntry(buf, base.KindPut, fmt.Appendf(nil, "key %d", i%n), fmt.Appendf(nil, "value %d", i))
	}
	fixed := New(buf, make([]byte, Layout(2*n)), 2*n)
	column := New(buf, make([]byte, Layout(2*n)), 2*n)
	column.slot = noOffsets
	growing := NewGrowing(0)
	growing.SetBuffer(buf)
	for name, table := range map[string]*Table{"fixed": fixed, "offsets in the column": column, "growing": growing} {
		if (table.slot.offMask != 0) != (name == "fixed") {
			t.Fatalf("%s: not the layout that is meant", name)
		}
		hash := func(i int) uint64 { return uint64(i%3) * 0x5555 } // the upper bits, which slots have, are the same
		for i, off := range offs {
			e, _ := frame.DecodeEntry(buf[off:])
			table.Insert(off, &e, hash(i%n))
		}
		for i := range n + 1 {
			var e frame.Entry
			seq, ok := table.Get(&e, fmt.Appendf(nil, "key %d", i), hash(i), base.Visibility{Snapshot: math.MaxUint32})
			if ok != (i < n) || ok && (seq != uint64(n+i) || string(e.Value) != fmt.Sprintf("value %d", n+i)) {
				t.Errorf("%s: key %d: %v, sequence %d, %q", name, i, ok, seq, e.Value)
			}
		}
		if table.Distinct() != n {
			t.Errorf("%s: %d keys", name, table.Distinct())
		}
	}
}
