package view

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
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
	a.find(t, rs, 12, "e", "d m 100") // it is for others still
	a.Note([]byte("d"), nil, 100, 15)
	a.find(t, later, 16, "y", "x\x00  50") // to the end of all
	a.find(t, later, 16, "x", "")
	a.find(t, later, 16, "w", "d x 50")
}

// counted are records that count what is looked at.
type counted struct {
	*tree.State
	n int
}

func (c *counted) Changes(after, upTo uint64, told memtable.Changed) {
	c.n += int(upTo - after)
	c.State.Changes(after, upTo, told)
}

// TestGapsOfTwoAges: who looks at an older snapshot and who looks at a newer one, between which not all records are there,
// have a gap each, whoever notes it first, and whichever has the wider one.
func TestGapsOfTwoAges(t *testing.T) {
	rs := stateOf(16, "x", "y", "z") // 15 is in a table
	for _, seqs := range [][]uint64{{9, 17}, {17, 9}} {
		for _, high := range [][]string{{"m", "m"}, {"m", "n"}, {"n", "m"}} {
			a := Gaps{Longest: longestGap}
			for i, seq := range seqs {
				a.Note([]byte("d"), []byte(high[i]), 100, seq)
			}
			for range 3 {
				for i, seq := range seqs {
					a.find(t, rs, seq, "e", "d "+high[i]+" 100")
				}
			}
		}
	}
}

// TestGapGrowsInItsPlace: what is noted where a gap holds already, and goes further, takes its place.
func TestGapGrowsInItsPlace(t *testing.T) {
	rs := stateOf(1, "x", "y", "z", "x")
	a := Gaps{Longest: longestGap}
	a.Note([]byte("d"), []byte("k"), 100, 1)
	a.find(t, rs, 3, "e", "d k 100")
	a.Note([]byte("d"), []byte("m"), 110, 3)
	a.find(t, rs, 4, "e", "d m 110")
	if n, _ := a.count(); n != 1 {
		t.Errorf("%d gaps", n)
	}
}

// TestOlderLooksOnce: what an older snapshot has found out of a gap that a newer one has noted, by a look at what was
// written between them, is not looked for again, be it all of the gap or a part.
func TestOlderLooksOnce(t *testing.T) {
	var keys []string
	for i := range 100 {
		keys = append(keys, fmt.Sprintf("x%03d", i))
	}
	for _, c := range []struct{ changed, want string }{{"y", "d m 100"}, {"-g", "d g 100"}} {
		rs := &counted{State: stateOf(1, append(keys, c.changed)...)}
		a := Gaps{Longest: longestGap}
		a.Note([]byte("d"), []byte("m"), 100, 101)
		for range 5 {
			low, high, keys, ok := a.Find(rs, 1, []byte("e"), math.MaxInt, new(Cut))
			if got := fmt.Sprintf("%s %s %d", low, high, keys); !ok || got != c.want {
				t.Errorf("a gap %q, want %q", got, c.want)
			}
		}
		if rs.n != 100 {
			t.Errorf("%d records were looked at", rs.n)
		}
		a.find(t, rs.State, 101, "l", "d m 100") // the newer one has all of it still
		a.find(t, rs.State, 50, "e", c.want)     // between them it holds, too
	}
}

// TestOlderLooksInVain: where most keys of a newer gap were changed since, an older snapshot that comes to one after the other does not look at
// all records for each of them.
func TestOlderLooksInVain(t *testing.T) {
	var deletes []string
	for i := range 100 {
		deletes = append(deletes, fmt.Sprintf("-e%03d", i))
	}
	rs := &counted{State: stateOf(1, append(deletes, "x")...)}
	a := Gaps{Longest: longestGap}
	a.Note([]byte("d"), []byte("m"), 100, 101)
	for _, key := range deletes[1:] {
		if low, high, _, ok := a.Find(rs, 1, []byte(key[1:]), math.MaxInt, new(Cut)); ok {
			t.Errorf("%s is in a gap from %q to %q", key[1:], low, high)
		}
	}
	if rs.n > 100*recordsEach {
		t.Errorf("%d records were looked at", rs.n)
	}
	a.find(t, rs.State, 100, "e050", "d m 100") // a few records are no matter
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

// TestGapsAreFew: there are as many as there is room for, the ones that are used among them, none of which is within another of
// the same age.
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
