package layout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// An index may not make a reader believe, and allocate, more than the file can hold.
func TestHostileIndex(t *testing.T) {
	entry := func(change func(e *Entry)) []byte {
		e := Entry{Rows: 1, KeyPage: 30, KeyForm: 128, ValueHeap: 10, ValuePages: []int{22}}
		change(&e)
		return appendEntry(nil, &e, 0)
	}
	for what, raw := range map[string][]byte{
		"no rows":               entry(func(e *Entry) { e.Rows = 0 }),
		"many rows":             entry(func(e *Entry) { e.Rows = block.MaxRows + 1 }),
		"first fence":           entry(func(e *Entry) { e.Fence = []byte("x") }),
		"first continues":       entry(func(e *Entry) { e.Continues = true }),
		"key page too small":    entry(func(e *Entry) { e.KeyPage = block.OverheadBytes }),
		"key page too large":    entry(func(e *Entry) { e.KeyPage = block.MaxStoredBytes + 1 }),
		"form too large":        entry(func(e *Entry) { e.KeyForm = block.MaxPageBytes + 1 }),
		"form empty":            entry(func(e *Entry) { e.KeyForm = 0 }),
		"value too large":       entry(func(e *Entry) { e.ValueHeap = base.MaxValueBytes + 1 }),
		"heap of many rows":     entry(func(e *Entry) { e.Rows, e.ValueHeap = 2, block.MaxPageBytes+1 }),
		"value page missing":    entry(func(e *Entry) { e.ValuePages = nil }),
		"value page too large":  entry(func(e *Entry) { e.ValuePages[0] = block.MaxStoredBytes + 1 }),
		"behind the limit":      entry(func(e *Entry) { e.KeyPage = 1000 }),
		"unknown flag":          append(append([]byte{0, 0}, 0x80), entry(func(e *Entry) {})[3:]...),
		"shared with nothing":   append([]byte{1, 0}, entry(func(e *Entry) {})[2:]...),
		"fence longer than all": binary.AppendUvarint([]byte{0}, 1<<40),
		"same fence again":      bytes.Repeat(entry(func(e *Entry) {}), 2),
		"more than counted":     bytes.Repeat(entry(func(e *Entry) {}), 3),
	} {
		x := NewIndex(2)
		err := x.AddPage(raw, base.FileHeaderBytes+200)
		if err == nil {
			err = x.Finish(&Footer{BlocksBytes: 104, Blocks: 2, Rows: 2})
		}
		if !errors.Is(err, errIndex) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	x := NewIndex(1)
	if err := x.AddPage(entry(func(e *Entry) {}), base.FileHeaderBytes+52); err != nil || x.Finish(&Footer{BlocksBytes: 52, Blocks: 1, Rows: 1}) != nil {
		t.Errorf("the entry these are made of is refused: %v", err)
	}
	x = NewIndex(1000)
	e, raw := Entry{Fence: bytes.Repeat([]byte("f"), base.MaxKeyBytes), Rows: 1, KeyPage: 30, KeyForm: 128}, appendEntry(nil, &Entry{Rows: 1, KeyPage: 30, KeyForm: 128}, 0)
	for i := range 999 {
		binary.BigEndian.PutUint32(e.Fence[base.MaxKeyBytes-4:], uint32(i))
		raw = appendEntry(raw, &e, 0)
	}
	if err := x.AddPage(raw, 1<<40); !errors.Is(err, errIndex) || len(x.heap) > MaxFenceBytes {
		t.Errorf("fences of %d bytes: error %v", len(x.heap), err)
	}
}

// TestHolds: a block has keys from its fence on and before the next one; where versions of one key stand on both sides of a
// fence, it is that key.
func TestHolds(t *testing.T) {
	var raw []byte
	var before []byte
	for _, e := range []Entry{{}, {Fence: []byte("common m")}, {Fence: []byte("common mm"), Continues: true}, {Fence: []byte("common x")}} {
		e.Rows, e.KeyPage, e.KeyForm = 1, 30, 128
		raw = appendEntry(raw, &e, base.CommonPrefix(before, e.Fence))
		before = e.Fence
	}
	x := NewIndex(4)
	if err := x.AddPage(raw, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := x.Finish(&Footer{BlocksBytes: 120, Blocks: 4, Rows: 4}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		block       int
		first, last string
		holds       bool
	}{
		{0, "", "common lzzz", true},
		{0, "a", "c", true},
		{0, "a", "common", true},
		{0, "a", "common m", false},
		{0, "a", "d", false},
		{1, "common m", "common mm", true},
		{1, "common ma", "common mm", true},
		{1, "common m", "common ma", false}, // the key that goes on is not there
		{1, "common m", "common mn", false},
		{1, "common l", "common mm", false},
		{1, "common", "common mm", false},
		{1, "a", "common mm", false},
		{2, "common mm", "common mm", true},
		{2, "common mm", "common w", true},
		{2, "common mn", "common w", false}, // another key than the one that goes on
		{2, "common mm", "common x", false},
		{2, "common mm", "d", false},
		{3, "common x", "common x", true},
		{3, "d", "z", true},
		{3, "common w", "z", false},
	} {
		if got := x.Holds(c.block, []byte(c.first), []byte(c.last)); got != c.holds {
			t.Errorf("block %d, from %q to %q: %v", c.block, c.first, c.last, got)
		}
	}
}
