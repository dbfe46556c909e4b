package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

func applied(t testing.TB, v *Version, e *Edit) *Version {
	t.Helper()
	next, err := v.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func sample(t testing.TB) *Version {
	return applied(t, new(Version), &Edit{Added: []Added{
		{Level: 0, Run: 7, Table: tab(7, "c", "d")},
		{Level: 0, Run: 7, Table: tab(8, "a", "b")},
		{Level: 0, Run: 9, Table: tab(9, "a", "z")},
		{Level: 0, Run: 3, Table: tab(3, "a", "z")},
		{Level: 5, Table: tab(5, "f", "g")},
		{Level: 5, Table: tab(4, "a", "e")},
		{Level: 6, Table: tab(1, "a", "z")},
	}})
}

func TestVersionOrder(t *testing.T) {
	v := sample(t)
	var got []string
	for level, m := range v.Tables() {
		got = append(got, fmt.Sprintf("%d:%d", level, m.Num))
	}
	if s := strings.Join(got, " "); s != "0:9 0:8 0:7 0:3 5:4 5:5 6:1" {
		t.Errorf("order %s", s)
	}
	if v.NumRuns() != 5 || v.NumTables() != 7 || v.Bytes(0) != 4000 || v.Bytes(5) != 2000 || v.Bytes(1) != 0 {
		t.Errorf("runs %d, tables %d, bytes %d %d", v.NumRuns(), v.NumTables(), v.Bytes(0), v.Bytes(5))
	}
	if !strings.Contains(v.String(), "L0 run 7: 000008[\"a\",\"b\"]#8-17 000007") {
		t.Errorf("string:\n%s", v)
	}
}

func TestVersionSearch(t *testing.T) {
	v := sample(t)
	if n := len(v.Overlapping(5, []byte("e"), []byte("f"))); n != 1 {
		t.Errorf("%d tables in [e,f)", n)
	}
	if n := len(v.Overlapping(0, nil, nil)) + len(v.Overlapping(5, nil, nil)); n != 6 {
		t.Errorf("%d tables in all", n)
	}
	if n := len(v.Overlapping(0, []byte("c"), nil)); n != 3 {
		t.Errorf("%d tables of level 0 from c on", n)
	}
}

// Searches agree with asking every table.
func TestVersionSearchModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		e, at := new(Edit), 0
		for n := uint64(1); at < 60; n++ {
			low := at + rng.IntN(4)
			high := low + rng.IntN(4)
			m := tab(n, fmt.Sprintf("%02d", low), fmt.Sprintf("%02d", high))
			m.LargestExclusive = high > low && rng.IntN(2) == 0
			at = high + 1
			if m.LargestExclusive && rng.IntN(2) == 0 {
				at = high // neighbours may touch
			}
			e.Added = append(e.Added, Added{Level: 3, Table: m})
		}
		v := applied(t, new(Version), e)
		for range 50 {
			low, high := fmt.Sprintf("%02d", rng.IntN(60)), fmt.Sprintf("%02d", rng.IntN(60))
			n := 0
			for _, m := range v.Levels[3] {
				if m.Overlaps([]byte(low), []byte(high)) && low < high {
					n++
				}
			}
			if got := len(v.Overlapping(3, []byte(low), []byte(high))); low < high && got != n {
				t.Fatalf("%d tables in [%s,%s), want %d, of %s", got, low, high, n, v)
			}
		}
	}
}

func TestApplyIsAtomicAndShares(t *testing.T) {
	v := sample(t)
	before := v.String()
	next := applied(t, v, &Edit{
		Removed: []Removed{{0, 8}, {0, 7}, {5, 4}, {6, 1}},
		Added:   []Added{{Level: 6, Table: tab(4, "a", "e")}}, // moved
	})
	if v.String() != before {
		t.Error("the old version changed")
	}
	if next.NumTables() != 4 || len(next.L0) != 2 || next.Levels[6][0].Num != 4 || len(next.Levels[5]) != 1 {
		t.Errorf("after:\n%s", next)
	}
}

func TestBadEdits(t *testing.T) {
	change := func(f func(*base.TableMeta)) *Edit {
		m := tab(50, "p", "q")
		f(m)
		return &Edit{Added: []Added{{Level: 2, Table: m}}}
	}
	for name, e := range map[string]*Edit{
		"not there":         {Removed: []Removed{{5, 77}}},
		"wrong level":       {Removed: []Removed{{6, 4}}},
		"removed twice":     {Removed: []Removed{{5, 4}, {5, 4}}},
		"added again":       {Added: []Added{{Level: 2, Table: tab(4, "x", "y")}}},
		"added twice":       {Added: []Added{{Level: 2, Table: tab(50, "a", "b")}, {Level: 3, Table: tab(50, "x", "y")}}},
		"overlap":           {Added: []Added{{Level: 5, Table: tab(50, "e", "e")}}},
		"overlap in run":    {Added: []Added{{Level: 0, Run: 7, Table: tab(50, "b", "bb")}}},
		"overlap in edit":   {Added: []Added{{Level: 2, Table: tab(50, "a", "c")}, {Level: 2, Table: tab(51, "b", "d")}}},
		"level 7":           {Added: []Added{{Level: 7, Table: tab(50, "a", "c")}}},
		"level -1":          {Added: []Added{{Level: -1, Table: tab(50, "a", "c")}}},
		"no run":            {Added: []Added{{Level: 0, Table: tab(50, "a", "c")}}},
		"run in a level":    {Added: []Added{{Level: 1, Run: 3, Table: tab(50, "a", "c")}}},
		"bounds":            change(func(m *base.TableMeta) { m.Largest = []byte("o") }),
		"exclusive":         change(func(m *base.TableMeta) { m.Largest, m.LargestExclusive = m.Smallest, true }),
		"no bounds":         change(func(m *base.TableMeta) { m.Smallest = nil }),
		"no bytes":          change(func(m *base.TableMeta) { m.Size = 0 }),
		"sequences":         change(func(m *base.TableMeta) { m.MinSeq = m.MaxSeq + 1 }),
		"great sequence":    change(func(m *base.TableMeta) { m.MaxSeq = base.MaxSeq + 1 }),
		"global sequence":   change(func(m *base.TableMeta) { m.GlobalSeq = m.MinSeq }),
		"deletes":           change(func(m *base.TableMeta) { m.Deletes = m.Entries + 1 }),
		"empty":             change(func(m *base.TableMeta) { m.Entries, m.Deletes = 0, 0 }),
		"great number":      change(func(m *base.TableMeta) { m.Num = maxFileNum + 1 }),
		"negative raw size": change(func(m *base.TableMeta) { m.RawBytes = -1 }),
	} {
		v := sample(t)
		before := v.String()
		next, err := v.Apply(e)
		var c *base.CorruptionError
		if !errors.As(err, &c) || next != nil {
			t.Errorf("%s: %v, %v", name, next, err)
		}
		if v.String() != before {
			t.Errorf("%s changed the version", name)
		}
		if all := newFold(testStore); all.apply(sampleEdit(t)) == nil && all.apply(e) == nil {
			if _, err := all.finish(); !errors.As(err, &c) {
				t.Errorf("%s: recovery says %v", name, err)
			}
		}
	}
}

func sampleEdit(t testing.TB) *Edit {
	s := NewState(testStore)
	s.Version = sample(t)
	return s.Snapshot()
}

// Neighbours may touch where the first one's end is exclusive.
func TestTouchingTables(t *testing.T) {
	a, b := tab(1, "a", "m"), tab(2, "m", "z")
	e := &Edit{Added: []Added{{Level: 1, Table: a}, {Level: 1, Table: b}}}
	if _, err := new(Version).Apply(e); err == nil {
		t.Error("tables that share a key do not overlap")
	}
	a.LargestExclusive = true
	if v := applied(t, new(Version), e); !slices.Equal(v.Overlapping(1, []byte("m"), []byte("n")), []*base.TableMeta{b}) || !bytes.Equal(v.Levels[1][0].Largest, b.Smallest) {
		t.Error("key m is not in the second table")
	}
}

// Folding all edits at once and applying them one by one give the same state, and
// so does the snapshot of the result.
func TestFoldAgreesWithApply(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s, all := NewState(testStore), newFold(testStore)
		for range 20 {
			e := randomEdit(rng, s)
			next, err := s.Apply(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := all.apply(e); err != nil {
				t.Fatal(err)
			}
			s = next
		}
		folded, err := all.finish()
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, folded, s)
		again, err := NewState(testStore).Apply(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, again, s)
	}
}

func TestStateNumbersOnlyGrow(t *testing.T) {
	s := NewState(testStore)
	step := func(e *Edit) {
		t.Helper()
		next, err := s.Apply(e)
		if err != nil {
			t.Fatal(err)
		}
		s = next
	}
	step(&Edit{NextFileNum: 10, LastSeq: 20, IngestedThrough: 5, Segments: segments(3, 4, 5).Segments})
	step(&Edit{NextFileNum: 9, LastSeq: 19, IngestedThrough: 4, LogStart: 4})
	step(&Edit{LogStart: 3})
	if s.NextFileNum != 10 || s.LastSeq != 20 || s.IngestedThrough != 5 || s.LogStart != 4 || len(s.Segments) != 2 {
		t.Errorf("state %+v", s)
	}
	step(&Edit{Added: []Added{{Level: 1, Table: tab(40, "a", "b")}}, Segments: segments(60).Segments})
	if s.NextFileNum != 61 || s.LastSeq != 49 {
		t.Errorf("next file %d, last sequence %d", s.NextFileNum, s.LastSeq)
	}
	for _, num := range []uint64{3, 60, 59, 1 << 32} {
		if _, err := s.Apply(segments(num)); !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("segment %d is taken: %v", num, err)
		}
	}
	if _, err := NewState(testStore).Apply(&Edit{LogStart: 9, NextFileNum: 9, Segments: segments(3).Segments}); err != nil {
		t.Errorf("log start takes effect before segments: %v", err)
	}
}

func TestDroppedStaysUntilCleared(t *testing.T) {
	s := NewState(testStore)
	for i, c := range []struct {
		e    *Dropped
		want Dropped
	}{{nil, Dropped{}}, {&Dropped{3, 4}, Dropped{3, 4}}, {nil, Dropped{3, 4}}, {&Dropped{1, 1}, Dropped{1, 1}}, {&Dropped{}, Dropped{}}} {
		next, err := s.Apply(&Edit{Dropped: c.e})
		if err != nil || next.Dropped != c.want {
			t.Errorf("%d: %+v, %v", i, next, err)
		}
		s = next
	}
}

// An edit of log segments only, as each new one makes, copies no tables.
func TestEditWithoutTablesKeepsTheVersion(t *testing.T) {
	v := new(Version)
	if next, err := v.Apply(&Edit{Segments: []Segment{{Num: 3}}}); next != v || err != nil {
		t.Errorf("another version, %v", err)
	}
}

// TestUnreadableIsNotWritten: a report of more bytes than DecodeEdit takes is refused before anything is written.
func TestUnreadableIsNotWritten(t *testing.T) {
	if d := (Dropped{Bytes: maxCount - 3, From: 8}).More(3).More(1); d != (Dropped{maxCount, 8}) {
		t.Errorf("4 bytes more: %+v", d)
	}
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	before := fsys.Hash()
	for what, write := range map[string]func(*Edit) error{
		"Append":       func(e *Edit) error { _, err := l.Append(e); return err },
		"CreateSealed": func(e *Edit) error { return CreateSealed(fsys, "db", testStore, 9, e) },
	} {
		if err := write(&Edit{Dropped: &Dropped{Bytes: maxCount + 1}}); !errors.Is(err, base.ErrCorrupt) || fsys.Hash() != before {
			t.Errorf("%s: %v", what, err)
		}
	}
	mustAppend(t, l, &Edit{Dropped: &Dropped{Bytes: maxCount, From: 8}})
	if s := mustRecover(t, fsys); s.Dropped != (Dropped{maxCount, 8}) {
		t.Errorf("report %+v", s.Dropped)
	}
}
