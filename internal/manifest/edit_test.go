package manifest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

func TestEditGoldenBytes(t *testing.T) {
	e := &Edit{
		NextFileNum: 300, LastSeq: 77, IngestedThrough: 70, LogStart: 3, Dropped: &Dropped{Bytes: 5, From: 2<<32 | 128},
		Segments: []Segment{{3, testID(0x30)}}, Removed: []Removed{{5, 200}},
		Added: []Added{
			{Level: 0, Run: 9, Table: &base.TableMeta{
				Num: 9, File: testID(0x90), Size: 1000, Smallest: []byte("ab"), Largest: []byte("c"), LargestExclusive: true,
				MinSeq: 50, MaxSeq: 50, GlobalSeq: 50, Entries: 7, Deletes: 1, RangeDeletes: 2, RawBytes: 128,
			}},
			{Level: 6, Table: &base.TableMeta{
				Num: 10, File: testID(0xA0), Size: 1, Smallest: []byte("d"), Largest: []byte("d"), MinSeq: 1, MaxSeq: 3, Entries: 1,
			}},
		},
	}
	want := "0302ac02" + "05014d" + "070146" + "090103" + "0b0605" + "8081808020" +
		"0d1103303132333435363738393a3b3c3d3e3f" + "0f0305c801" +
		"112200" + "0909" + "909192939495969798999a9b9c9d9e9f" + "03" + "e807" + "3200" + "070102" + "8001" + "026162" + "0163" +
		"111e06" + "0a" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "00" + "01" + "0102" + "010000" + "00" + "0164" + "0164"
	got := hex.EncodeToString(e.Append(nil))
	if got != want {
		t.Fatalf("\n got %s\nwant %s", got, want)
	}
	back, err := DecodeEdit(e.Append(nil))
	if err != nil || !reflect.DeepEqual(back, e) {
		t.Fatalf("decoded %+v, %v", back, err)
	}
}

func TestEditRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := NewState(testStore)
		for range 4 {
			e := randomEdit(rng, s)
			b := e.Append(nil)
			back, err := DecodeEdit(b)
			if err != nil || !bytes.Equal(back.Append(nil), b) {
				t.Fatalf("%x: %v", b, err)
			}
			next, err := s.Apply(back)
			if err != nil {
				t.Fatal(err)
			}
			s = next
		}
	}
}

func TestEmptyEdit(t *testing.T) {
	e := new(Edit)
	if b := e.Append(nil); len(b) != 0 || !e.Empty() {
		t.Errorf("empty edit is % x", b)
	}
	if e, err := DecodeEdit(nil); err != nil || !e.Empty() {
		t.Errorf("%+v, %v", e, err)
	}
	if (&Edit{Dropped: &Dropped{}}).Empty() {
		t.Error("clearing a report changes nothing")
	}
}

func TestMalformedEdits(t *testing.T) {
	for name, text := range map[string]string{
		"zero number":           "030100",
		"long number":           "030281" + "00",
		"unfinished number":     "03018" + "1",
		"field too long":        "03ff01" + "01",
		"field beyond the end":  "0302ac",
		"left over":             "03020101",
		"repeated number":       "030101" + "030102",
		"out of order":          "050101" + "030101",
		"file number too great": "0307ffffffffffff7f",
		"sequence too great":    "0509ffffffffffffffff" + "02",
		"level 7":               "0f020701",
		"short id":              "0d0203" + "30",
		"unknown flag":          "111e06" + "0a" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "04" + "01" + "0102" + "010000" + "00" + "0164" + "0164",
		"global sequence 0":     "111e06" + "0a" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "02" + "01" + "0000" + "010000" + "00" + "0164" + "0164",
		"run 0":                 "111f0000" + "0a" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "00" + "01" + "0102" + "010000" + "00" + "0164" + "0164",
		"key beyond the end":    "111e06" + "0a" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "00" + "01" + "0102" + "010000" + "00" + "0164" + "0264",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e, err := DecodeEdit(b)
		if !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

func TestUnknownFields(t *testing.T) {
	known := (&Edit{LastSeq: 5}).Append(nil)
	optional := appendField(bytes.Clone(known), 50<<1, []byte("whatever"))
	optional = appendField(optional, 50<<1, nil)
	e, err := DecodeEdit(optional)
	if err != nil || e.LastSeq != 5 || !e.unknown {
		t.Errorf("optional field: %+v, %v", e, err)
	}
	if _, err := DecodeEdit(appendField(known, 50<<1|1, nil)); !errors.Is(err, base.ErrFormatTooNew) {
		t.Errorf("field that has to be understood: %v", err)
	}
}

func FuzzEdit(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := NewState(testStore)
	for range 10 {
		e := randomEdit(rng, s)
		f.Add(e.Append(nil))
		s, _ = s.Apply(e)
	}
	f.Add(appendField(nil, 50<<1, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEdit(b)
		if err != nil {
			if !errors.Is(err, base.ErrCorrupt) && !errors.Is(err, base.ErrFormatTooNew) {
				t.Fatal(err)
			}
			return
		}
		if !e.unknown && !bytes.Equal(e.Append(nil), b) {
			t.Fatalf("% x is not what it encodes to, % x", b, e.Append(nil))
		}
		all := newFold(testStore)
		var folded *State
		if err = all.apply(e); err == nil {
			folded, err = all.finish()
		}
		applied, err2 := NewState(testStore).Apply(e)
		if (err == nil) != (err2 == nil && len(e.Removed) == 0) {
			t.Fatalf("folded: %v; applied: %v", err, err2)
		}
		if err == nil && content(folded) != content(applied) {
			t.Fatal("folded and applied states differ")
		}
	})
}

// TestDecodeIngest: an ingest adds tables, each run with the next sequence, and does nothing else.
func TestDecodeIngest(t *testing.T) {
	run := func(e *Edit, i int, seq uint64) {
		m := *e.Added[i].Table
		m.GlobalSeq, m.MinSeq, m.MaxSeq = seq, seq, seq
		e.Added[i].Run, e.Added[i].Table = seq, &m
	}
	for what, c := range map[string]struct {
		count  uint32
		change func(e *Edit)
		right  bool
	}{
		"one run":                {1, func(e *Edit) {}, true},
		"two runs":               {2, func(e *Edit) { run(e, 1, 6) }, true},
		"two runs, keys fall":    {2, func(e *Edit) { slices.Reverse(e.Added); run(e, 1, 6) }, true},
		"the past":               {1, func(e *Edit) { run(e, 0, 1) }, false},
		"the greatest sequence":  {1, func(e *Edit) { run(e, 0, base.MaxSeq) }, false},
		"a gap":                  {3, func(e *Edit) { run(e, 1, 7) }, false},
		"sequences fall":         {2, func(e *Edit) { run(e, 0, 6) }, false},
		"sequences of rows":      {1, func(e *Edit) { run(e, 0, 5); e.Added[0].Table.GlobalSeq = 0 }, false},
		"another run":            {1, func(e *Edit) { e.Added[0].Run = 7 }, false},
		"a level":                {1, func(e *Edit) { e.Added[0].Level, e.Added[0].Run = 6, 0 }, false},
		"the log's start":        {1, func(e *Edit) { e.LogStart = 1 }, false},
		"a removal":              {1, func(e *Edit) { e.Removed = []Removed{{Num: 1}} }, false},
		"no count":               {0, func(e *Edit) {}, false},
		"too many":               {1<<32 - 1, func(e *Edit) {}, false},
		"no table":               {0, func(e *Edit) { e.Added = nil }, false},
		"a table twice":          {2, func(e *Edit) { e.Added[1] = e.Added[0]; run(e, 1, 6) }, false},
		"overlap":                {1, func(e *Edit) { run(e, 0, 5); e.Added[0].Table.Largest = []byte("z") }, false},
		"keys fall within a run": {1, func(e *Edit) { slices.Reverse(e.Added) }, false},
	} {
		e := &Edit{Added: []Added{{Table: tab(3, "a", "b")}, {Table: tab(4, "c", "d")}}}
		run(e, 0, 5)
		run(e, 1, 5)
		c.change(e)
		payload := e.Append(nil)
		added, err := DecodeIngest(frame.Header{Seq: 5, Count: c.count}, payload, "000007.log", 64)
		if c.right && (err != nil || len(added) != 2) || !c.right && !errors.Is(err, base.ErrCorrupt) {
			t.Errorf("%s: %d tables, %v", what, len(added), err)
		}
		if !c.right && (err == nil || !strings.Contains(err.Error(), "000007.log at offset 64")) {
			t.Errorf("%s: %v does not say where", what, err)
		}
		for _, tag := range []byte{100, 101} {
			if _, err := DecodeIngest(frame.Header{Seq: 5, Count: c.count}, append(payload, tag, 0), "f", 0); c.right && !errors.Is(err, base.ErrFormatTooNew) {
				t.Errorf("%s, and a field that is unknown: %v", what, err)
			}
		}
	}
}
