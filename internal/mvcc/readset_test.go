package mvcc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// brute is a read set as a list, checked by looking at everything.
type brute struct {
	keys   []string
	ranges []Range
}

func (b *brute) readsKey(key []byte) bool {
	for _, k := range b.keys {
		if k == string(key) {
			return true
		}
	}
	for _, g := range b.ranges {
		if bytes.Compare(g.Low, key) <= 0 && bytes.Compare(key, g.High) < 0 {
			return true
		}
	}
	return false
}

func (b *brute) readsRange(low, high []byte) bool {
	for _, k := range b.keys {
		if k >= string(low) && k < string(high) {
			return true
		}
	}
	for _, g := range b.ranges {
		if bytes.Compare(g.Low, high) < 0 && bytes.Compare(low, g.High) < 0 {
			return true
		}
	}
	return false
}

// commits are the records of a memtable, as a list as well.
type commits struct {
	table *memtable.Table
	buf   []byte
	list  []frame.Entry
}

func (c *commits) add(kind base.Kind, key, value []byte) {
	if c.table == nil {
		c.table = memtable.NewGrowing(1)
	}
	at := len(c.buf)
	c.buf = frame.AppendEntry(c.buf, kind, key, value)
	c.table.SetBuffer(c.buf)
	e, _ := frame.DecodeEntry(c.buf[at:])
	c.table.Insert(at, &e, base.Hash(key))
	c.list = append(c.list, frame.Entry{Kind: kind, Key: bytes.Clone(key), Value: bytes.Clone(value)})
}

// first returns the index of the first record from..to-1 that conflicts, or -1.
func (c *commits) first(b *brute, from, to int) int {
	for i := from; i < to; i++ {
		e := c.list[i]
		if e.Kind == base.KindRangeDelete && b.readsRange(e.Key, e.Value) || e.Kind != base.KindRangeDelete && b.readsKey(e.Key) {
			return i
		}
	}
	return -1
}

func key(n int) []byte { return fmt.Appendf(nil, "\x00%03d", n) }

// TestAgainstBruteForce compares Check with the lists, on random reads and commits.
func TestAgainstBruteForce(t *testing.T) {
	var set ReadSet
	hits := 0
	const rounds = 3000
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 9))
		set.Reset()
		var b brute
		for range r.IntN(20) {
			read(r, &set, &b)
		}
		var c commits
		for range 1 + r.IntN(30) {
			write(r, &c)
		}
		from := r.IntN(len(c.list) + 1)
		to := from + r.IntN(len(c.list)-from+1)
		got, want := set.Check(c.table, from, to), c.first(&b, from, to)
		if (got != nil) != (want >= 0) {
			t.Fatalf("seed %d: %+v, want record %d of %d..%d; reads %q %q", seed, got, want, from, to, b.keys, b.ranges)
		}
		if set.Empty() != (len(b.keys)+len(b.ranges) == 0) {
			t.Fatalf("seed %d: Empty is %v", seed, set.Empty())
		}
		if got == nil {
			continue
		}
		hits++
		if got.Seq != uint64(want)+1 {
			t.Fatalf("seed %d: conflict at sequence %d, want %d", seed, got.Seq, want+1)
		}
		if e := c.list[want]; got.High == nil && e.Kind != base.KindRangeDelete && !bytes.Equal(got.Low, e.Key) {
			t.Fatalf("seed %d: conflict on %q, want %q", seed, got.Low, e.Key)
		}
		got.outlives(t, &set, &c)
	}
	if hits < rounds/5 || hits > rounds*4/5 {
		t.Errorf("%d of %d rounds conflict; that shows little", hits, rounds)
	}
}

// TestFewKeysAmongManyRecords: where few keys were read these are looked for, in place of a walk over the records. The
// outcome is the same, and of several conflicts with a key the newest is told.
func TestFewKeysAmongManyRecords(t *testing.T) {
	hits := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 10))
		var set ReadSet
		var c commits
		for range 500 {
			c.add([]base.Kind{base.KindPut, base.KindDelete}[r.IntN(2)], key(r.IntN(1000)), nil)
		}
		from := 1 + r.IntN(100)
		to := len(c.list) - 1 - r.IntN(100)
		newest := map[string]uint64{} // of the records looked at
		for i := from; i < to; i++ {
			newest[string(c.list[i].Key)] = uint64(i) + 1
		}
		conflicts := 0
		for range 1 + r.IntN(4) {
			k := key(r.IntN(1000))
			if edge := []int{from - 1, from, to - 1, to}; r.IntN(2) == 0 {
				k = c.list[edge[r.IntN(4)]].Key
			}
			set.AddKey(k, base.Hash(k))
			if newest[string(k)] > 0 {
				conflicts++
			}
		}
		if set.Len() >= (to-from)/recordsPerKey {
			t.Fatal("too many keys")
		}
		got := set.Check(c.table, from, to)
		if (got != nil) != (conflicts > 0) {
			t.Fatalf("seed %d: %+v, and %d keys were written", seed, got, conflicts)
		}
		if got == nil {
			continue
		}
		hits++
		if got.High != nil || got.Seq != newest[string(got.Low)] || set.find(uint32(base.Hash(got.Low)>>32), got.Low) < 0 {
			t.Fatalf("seed %d: %+v, want %d", seed, got, newest[string(got.Low)])
		}
		got.outlives(t, &set, &c)
	}
	if hits < 100 || hits > 480 {
		t.Errorf("%d of 500 conflict; that shows little", hits)
	}
}

// outlives fails if a conflict is not what it was once the memory of the set and of the records serves others.
func (got *Conflict) outlives(t *testing.T, set *ReadSet, c *commits) {
	t.Helper()
	low, high := bytes.Clone(got.Low), bytes.Clone(got.High)
	clear(c.buf)
	set.Reset()
	for i := range 20 {
		set.AddKey(key(2000+i), base.Hash(key(2000+i)))
	}
	if !bytes.Equal(got.Low, low) || !bytes.Equal(got.High, high) {
		t.Fatalf("%q to %q has become %q to %q", low, high, got.Low, got.High)
	}
}

func read(r *rand.Rand, set *ReadSet, b *brute) {
	if r.IntN(3) > 0 {
		k := key(r.IntN(100))
		set.AddKey(k, base.Hash(k))
		b.keys = append(b.keys, string(k))
		k[1] = 'x' // what was added is copied
		return
	}
	low := r.IntN(100)
	g := Range{key(low), key(low + r.IntN(6) - 1)}
	if r.IntN(3) == 0 {
		g.High = append(g.High, 0)
	}
	if bytes.Compare(g.Low, g.High) < 0 {
		b.ranges = append(b.ranges, Range{bytes.Clone(g.Low), bytes.Clone(g.High)})
	}
	set.AddRange(g.Low, g.High)
	g.Low[1], g.High[1] = 'x', 'x'
	if r.IntN(5) == 0 {
		set.Ranges() // merges in between
	}
}

func write(r *rand.Rand, c *commits) {
	n := r.IntN(100)
	switch r.IntN(20) {
	case 0:
		c.add(base.KindRangeDelete, key(n), key(n+1+r.IntN(3)))
	case 1, 2, 3, 4:
		c.add(base.KindDelete, key(n), nil)
	default:
		c.add(base.KindPut, key(n), []byte("v"))
	}
}

// TestRangesAreSortedAndDisjoint, however they were added.
func TestRangesAreSortedAndDisjoint(t *testing.T) {
	var set ReadSet
	r := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		low := r.IntN(900)
		set.AddRange(key(low), key(low+r.IntN(3)))
	}
	ranges := set.Ranges()
	for i, g := range ranges {
		if bytes.Compare(g.Low, g.High) >= 0 || i > 0 && bytes.Compare(ranges[i-1].High, g.Low) >= 0 {
			t.Fatalf("range %d of %d: %q after %q", i, len(ranges), g, ranges[max(i-1, 0)])
		}
	}
	if len(ranges) > 450 {
		t.Errorf("%d ranges", len(ranges))
	}
}

// TestDuplicatesTakeNoRoom: reading a key again and again does not grow the set.
func TestDuplicatesTakeNoRoom(t *testing.T) {
	var set ReadSet
	for i := range 100_000 {
		k := key(i % 10)
		set.AddKey(k, base.Hash(k))
		set.AddRange(key(500), key(600))
	}
	if set.Len() != 10 || len(set.Ranges()) != 1 {
		t.Errorf("%d keys, %d ranges", set.Len(), len(set.Ranges()))
	}
	for i := range 10 {
		if !bytes.Equal(set.Key(i), key(i)) {
			t.Errorf("key %d is %q", i, set.Key(i))
		}
	}
}

// TestResetAfterLarge forgets everything, and gives large memory back.
func TestResetAfterLarge(t *testing.T) {
	var set ReadSet
	for i := range 10_000 {
		k := fmt.Appendf(nil, "\x00%d", i)
		set.AddKey(k, base.Hash(k))
	}
	set.AddRange([]byte{0}, []byte{1})
	set.Reset()
	if !set.Empty() || set.slots != nil {
		t.Errorf("%d slots are kept", len(set.slots))
	}
	set.AddKey([]byte("\x00a"), base.Hash([]byte("\x00a")))
	set.Reset()
	var c commits
	c.add(base.KindPut, []byte("\x00a"), nil)
	if set.Check(c.table, 0, 1) != nil || !set.Empty() {
		t.Error("a small set is not forgotten")
	}
}

// TestEqualTags: keys whose hashes share their upper half are told apart.
func TestEqualTags(t *testing.T) {
	var set ReadSet
	const hash = 0xABCDEF0100000000
	for i := range 100 {
		set.AddKey(key(i), hash)
	}
	for i := range 200 {
		if got := set.find(hash>>32, key(i)) >= 0; got != (i < 100) {
			t.Errorf("key %d: %v", i, got)
		}
	}
}

// upTo grants so many bytes.
type upTo int

func (n upTo) MayHold(bytes int) bool { return bytes <= int(n) }

// TestGrants: a set remembers key by key what it may hold beyond its limit, and nothing beyond that; emptied it may again.
func TestGrants(t *testing.T) {
	for _, most := range []int{0, 100 << 10, 1 << 20} {
		r := ReadSet{Grants: upTo(most)}
		for range 2 {
			r.SetLimit(minLimit)
			exact := 0
			for i := 0; i < 100_000; i++ {
				key := fmt.Appendf(nil, "key%06d", i)
				r.AddKey(key, base.Hash(key))
				if r.Memory() > max(most, minLimit) {
					t.Fatalf("%d granted, %d held", most, r.Memory())
				}
				if !r.coarse {
					exact = i
				}
			}
			if enough := max(most, minLimit) / 100; exact < enough || exact == 99_999 {
				t.Errorf("%d granted: %d keys are remembered, want %d at least", most, exact, enough)
			}
			if r.Reset(); r.Grants == nil {
				t.Error("nothing is granted any more")
			}
		}
	}
}
