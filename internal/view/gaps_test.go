package view

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tree"
)

// stateOf returns a State of one memtable that puts keys, and deletes those that begin with a minus, one sequence each,
// from first on.
func stateOf(first uint64, keys ...string) *tree.State {
	var entries [][]byte
	for _, key := range keys {
		kind := base.KindPut
		if key[0] == '-' {
			kind, key = base.KindDelete, key[1:]
		}
		entries = append(entries, frame.AppendEntry(nil, kind, []byte(key), nil))
	}
	return stateWith(func() {}, first, entries)
}

// find looks for a gap and compares: "" is none, else "low high keys".
func (a *Gaps) find(t *testing.T, rs *tree.State, snapshot uint64, key, want string) {
	t.Helper()
	low, high, keys, ok := a.Find(rs, snapshot, []byte(key), math.MaxInt, new(Cut))
	got := ""
	if ok {
		got = fmt.Sprintf("%s %s %d", low, high, keys)
	}
	if got != want {
		t.Errorf("at %d, %q is in %q, want %q", snapshot, key, got, want)
	}
}

func (a *Gaps) count() (n, bounds int) {
	for i := range a.all {
		if g := a.all[i].Load(); g != nil {
			n, bounds = n+1, bounds+len(g.low)+len(g.high)
		}
	}
	return n, bounds
}

// TestGapOfASnapshot: a gap is there for who sees at least as much as who found it, and as long as all that came since
// can be looked at.
func TestGapOfASnapshot(t *testing.T) {
	rs := stateOf(11, "x", "y", "z", "-y")
	a := Gaps{Longest: longestGap}
	a.Note([]byte("d"), []byte("m"), 100, 12)
	a.find(t, rs, 11, "e", "d m 100") // y was put, which is not there
	a.find(t, rs, 9, "e", "")         // what was written then is in a table
	for snapshot := uint64(12); snapshot <= 14; snapshot++ {
		for key, want := range map[string]string{"c": "", "d": "d m 100", "lzz": "d m 100", "m": ""} {
			a.find(t, rs, snapshot, key, want)
		}
	}
	a.find(t, rs, 13, "e", "d m 100") // though somebody has looked at 14
	for key, want := range map[string]string{"e": "d f 100", "f": "", "g": "f\x00 k 100", "k": "", "l": "k\x00 m 100"} {
		b := Gaps{Longest: longestGap}
		b.Note([]byte("d"), []byte("m"), 100, 4) // f and k were deleted or put after 1
		b.find(t, stateOf(1, "c", "-f", "k", "-z"), 1, key, want)
		b.find(t, stateOf(1, "c", "-f", "k"), 1, key, "") // it ends before 4
	}
	if n, _ := a.count(); n != 1 {
		t.Errorf("%d gaps", n)
	}
	later := stateOf(16, "x") // 15 is in a table
	a.find(t, later, 16, "e", "")
	if n, _ := a.count(); n != 0 {
		t.Error("what may not hold any more is still there")
	}
	a.Note([]byte("d"), nil, 100, 15)
	a.find(t, later, 16, "y", "x\x00  50") // to the end of all
	a.find(t, later, 16, "x", "")
	a.find(t, later, 16, "w", "d x 50")
}

// TestGapOfFewRecords: a gap for which more records are to be looked at than is worth it is not returned, and stays.
func TestGapOfFewRecords(t *testing.T) {
	rs := stateOf(11, "x", "y", "z", "-y", "x", "y")
	for _, c := range []struct {
		snapshot uint64
		most     int
		found    bool
	}{{16, 2, false}, {16, 3, true}, {13, 0, true}, {11, 1, false}, {11, 2, true}} {
		b := Gaps{Longest: longestGap}
		b.Note([]byte("d"), []byte("m"), 100, 13)
		if _, _, _, ok := b.Find(rs, c.snapshot, []byte("e"), c.most, new(Cut)); ok != c.found {
			t.Errorf("at %d, looking at %d records: %v", c.snapshot, c.most, ok)
		}
		b.find(t, rs, c.snapshot, "e", "d m 100")
	}
}

// TestGapIsCut: of a gap is left what nobody has put.
func TestGapIsCut(t *testing.T) {
	rs := stateOf(1, "f", "-g", "h", "k", "z", "d")
	for _, c := range []struct {
		upTo uint64
		key  string
		want map[string]string // then
	}{
		{upTo: 0, key: "e", want: map[string]string{"e": "d m 90", "l": "d m 90"}},
		{upTo: 1, key: "e", want: map[string]string{"e": "d f 45", "f": "", "g": "f\x00 m 45", "l": "f\x00 m 45"}},
		{upTo: 2, key: "l", want: map[string]string{"e": "d f 45", "f": "", "g": "f\x00 m 45", "l": "f\x00 m 45"}},
		{upTo: 4, key: "g", want: map[string]string{"e": "d f 30", "f": "", "g": "f\x00 h 30", "i": "", "l": "k\x00 m 30"}},
		{upTo: 5, key: "i", want: map[string]string{"e": "d f 30", "g": "", "i": "h\x00 k 30", "l": "k\x00 m 30"}},
		{upTo: 6, key: "i", want: map[string]string{"d": "", "e": "", "i": "h\x00 k 45", "l": "k\x00 m 45"}},
		{upTo: 4, key: "h", want: map[string]string{"e": "d f 45", "h": "", "i": "", "l": "k\x00 m 45"}},
	} {
		a := Gaps{Longest: longestGap}
		a.Note([]byte("d"), []byte("m"), 90, 0)
		a.Find(rs, c.upTo, []byte(c.key), math.MaxInt, new(Cut))
		for key, want := range c.want {
			a.find(t, rs, c.upTo, key, want)
		}
	}
}

// TestGapsAreFew: there are as many as there is room for, the ones that are used among them, none of which is within another.
func TestGapsAreFew(t *testing.T) {
	rs := stateOf(1, "x")
	a := Gaps{Longest: longestGap}
	for i := range 100 {
		low := fmt.Appendf(nil, "%03d", 2*i)
		a.Note(low, fmt.Appendf(nil, "%03d", 2*i+1), 100, 0)
		a.find(t, rs, 0, "000", "000 001 100") // each time
	}
	if n, _ := a.count(); n != mostGaps {
		t.Errorf("%d gaps", n)
	}
	a.Note([]byte("000"), []byte("900"), 100, 0)
	if n, _ := a.count(); n != 1 {
		t.Errorf("%d gaps, one of which has the others in it", n)
	}
	long := bytes.Repeat([]byte("4"), 60000)
	a.Note(long, append(long, 'x'), 100, 0)
	a.find(t, stateOf(1, string(long)), 1, "300", "000 "+string(long)+" 50")
	if n, bounds := a.count(); n > mostGaps || bounds > mostGaps*a.Longest {
		t.Errorf("%d gaps, with bounds of %d bytes", n, bounds)
	}
}
