package mvcc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// reads is a set, all it was told, and the most memory it ever held.
type reads struct {
	ReadSet
	brute
	most int
}

func (r *reads) key(key []byte) {
	r.AddKey(key, base.Hash(key))
	r.brute.keys = append(r.brute.keys, string(key))
	r.note()
}

func (r *reads) scan(low, high []byte) {
	r.AddRange(low, high)
	if bytes.Compare(low, high) < 0 {
		r.brute.ranges = append(r.brute.ranges, Range{bytes.Clone(low), bytes.Clone(high)})
	}
	r.note()
}

func (r *reads) note() { r.most = max(r.most, r.Memory()) }

// conflicts reports whether a put of key conflicts with the set.
func conflicts(r *ReadSet, key []byte) bool {
	return r.find(uint32(base.Hash(key)>>32), key) >= 0 || r.InRange(key)
}

// check checks that nothing has been forgotten, and the limit kept.
func (r *reads) check(t *testing.T, limit int) {
	t.Helper()
	for _, k := range r.brute.keys {
		if !conflicts(&r.ReadSet, []byte(k)) {
			t.Fatalf("key %.40q of %d bytes is forgotten", k, len(k))
		}
		if r.CheckRange([]byte(k), append([]byte(k), 0), 1) == nil {
			t.Fatalf("key %.40q is forgotten by CheckRange", k)
		}
	}
	for _, g := range r.brute.ranges {
		last := bytes.Clone(g.High) // as late in the range as is easy to tell
		if n := len(last) - 1; last[n] == 0 {
			last = last[:n]
		} else {
			last[n]--
		}
		if !conflicts(&r.ReadSet, g.Low) || bytes.Compare(last, g.Low) > 0 && !conflicts(&r.ReadSet, last) {
			t.Fatalf("range %.40q to %.40q is forgotten", g.Low, g.High)
		}
		if r.CheckRange(last, append(bytes.Clone(last), 1), 1) == nil && bytes.Compare(last, g.Low) >= 0 {
			t.Fatalf("range %.40q to %.40q is forgotten by CheckRange", g.Low, g.High)
		}
	}
	if r.most > limit {
		t.Errorf("it held %d bytes, the limit is %d", r.most, limit)
	}
}

// randomKey makes keys of many lengths, among them ones that differ late.
func randomKey(r *rand.Rand) []byte {
	k := fmt.Appendf(nil, "\x00%d", r.IntN(5_000))
	switch r.IntN(40) {
	case 0:
		k = append(k, bytes.Repeat([]byte{0xFF}, r.IntN(3_000))...)
	case 1:
		k = append(bytes.Repeat([]byte{'p'}, 3_000), k...)
	case 2:
		if r.IntN(20) == 0 {
			k = append(k, make([]byte, 65_000)...)
		}
	}
	return append(k, byte(r.IntN(4)))
}

// TestCoarseningForgetsNothing: whatever was read, in whatever order, a write to it
// is a conflict afterwards, and the set keeps to its limit at every moment.
func TestCoarseningForgetsNothing(t *testing.T) {
	for _, limit := range []int{minLimit, 200 << 10} {
		for seed := range uint64(12) {
			r := rand.New(rand.NewPCG(seed, 3))
			var set reads
			set.SetLimit(int64(limit))
			points := r.IntN(101) // per cent
			for range 6_000 {
				if r.IntN(100) < points {
					set.key(randomKey(r))
					continue
				}
				low := randomKey(r)
				high := randomKey(r)
				if r.IntN(8) > 0 { // mostly what a Seek reads
					high = append(bytes.Clone(low), byte(r.IntN(3)))
				}
				set.scan(low, high)
			}
			set.check(t, limit)
			if !set.coarse {
				t.Errorf("limit %d, seed %d: never coarsened, with %d bytes", limit, seed, set.most)
			}
		}
	}
}

// TestReadSetIsBounded: a million random points, a million random seeks, and both,
// stay within the limit, which is true of the heap as well.
func TestReadSetIsBounded(t *testing.T) {
	const n = 1_000_000
	for _, limit := range []int{minLimit, 1 << 20, 8 << 20} {
		for what, points := range map[string]int{"points": 1, "seeks": 0, "both": 2} {
			t.Run(fmt.Sprintf("%d/%s", limit, what), func(t *testing.T) {
				before := heap()
				var set ReadSet
				set.SetLimit(int64(limit))
				r := rand.New(rand.NewPCG(1, uint64(limit)))
				most := 0
				var low, high [20]byte
				for i := range n {
					binary.BigEndian.PutUint64(low[:], r.Uint64())
					binary.BigEndian.PutUint64(low[8:], r.Uint64())
					if points == 1 || points == 2 && i%2 == 0 {
						set.AddKey(low[:17], base.Hash(low[:17]))
					} else {
						high = low
						high[7] |= 0xFF
						set.AddRange(low[:17], high[:18])
					}
					most = max(most, set.Memory())
				}
				if used := heap() - before; most > limit || used > int64(limit)*5/4 {
					t.Errorf("%d bytes at most, %d of heap now, with a limit of %d", most, used, limit)
				}
				t.Logf("%d bytes at most, now %d keys and %d ranges in %d", most, set.Len(), len(set.Ranges()), set.Memory())
				runtime.KeepAlive(&set)
			})
		}
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestCoarseningKeepsGaps: what was read in two places far from each other stays in
// two places, and what was read over and over is not widened at all.
func TestCoarseningKeepsGaps(t *testing.T) {
	var set reads
	set.SetLimit(minLimit)
	for i := range 20_000 {
		set.key(fmt.Appendf(nil, "\x00account/%06d", i*3))
		set.key(fmt.Appendf(nil, "\x00order/%06d", i*3))
	}
	set.check(t, minLimit)
	for _, k := range []string{"\x00account", "\x00b", "\x00order", "\x00p", "\x01"} {
		if conflicts(&set.ReadSet, []byte(k)) {
			t.Errorf("%q was not read", k)
		}
	}
	var same ReadSet
	same.SetLimit(minLimit)
	for i := range 100_000 {
		same.AddRange(key(i%10*10), key(i%10*10+1))
	}
	if same.coarse || len(same.Ranges()) != 10 || same.Memory() > minLimit {
		t.Errorf("coarse %v, %d ranges in %d bytes", same.coarse, len(same.Ranges()), same.Memory())
	}
}

// TestCoarseningSpreads: keys at equal distances become ranges of about equal length.
func TestCoarseningSpreads(t *testing.T) {
	var set ReadSet
	set.SetLimit(minLimit)
	const n = 100_000
	for i := range n {
		k := fmt.Appendf(nil, "\x00%08d", i*10)
		set.AddKey(k, base.Hash(k))
	}
	number := func(b []byte) (n int) {
		fmt.Sscanf(string(b[1:min(len(b), 9)]), "%d", &n)
		return n
	}
	widest := 0
	for _, g := range set.Ranges() {
		widest = max(widest, number(g.High)-number(g.Low))
	}
	if ranges := len(set.Ranges()); ranges < 50 || widest > 10*n/10 {
		t.Errorf("%d ranges, the widest is %d of %d", ranges, widest, 10*n)
	}
}

// TestLongReadsAreKept: a long key, and a range between long ones, are remembered as they are where there is room, or as much
// is granted.
func TestLongReadsAreKept(t *testing.T) {
	long := func(n int, last byte) []byte { return append(bytes.Repeat([]byte{'a'}, n), last) }
	for _, c := range []struct {
		bytes, reads, granted int
		coarse                bool
	}{{60_000, 1, 0, false}, {60_000, 2, 0, true}, {60_000, 2, 256 << 10, false}, {60_000, 9, 256 << 10, true}, {20_000, 1, 0, false}, {20_000, 4, 0, true}} {
		for _, what := range []string{"keys", "ranges"} {
			var set reads
			set.SetLimit(minLimit)
			if c.granted > 0 {
				set.Grants = upTo(c.granted)
			}
			n := c.bytes
			if what == "ranges" {
				n /= 2 // both bounds are as long together
			}
			for i := range byte(c.reads) {
				if what == "keys" {
					set.key(long(n, 'a'+4*i))
				} else {
					set.scan(long(n, 'a'+4*i), long(n, 'b'+4*i))
				}
			}
			set.check(t, max(minLimit, c.granted))
			if between := conflicts(&set.ReadSet, long(n, 'c')); set.coarse != c.coarse || between && !c.coarse {
				t.Errorf("%d %s of %d bytes, %d granted: coarse %v, what is between was read: %v", c.reads, what, c.bytes, c.granted, set.coarse, between)
			}
		}
	}
}

// TestLongBoundsAreCut: a limit that is less than one read takes is kept as well.
func TestLongBoundsAreCut(t *testing.T) {
	var set reads
	set.SetLimit(1)
	for i := range 50 {
		k := fmt.Appendf(nil, "\x00%04d", i%3*2)
		k = append(k, bytes.Repeat([]byte{0xFF}, 65_000)...)
		set.key(k)
		set.scan(k, append(bytes.Clone(k[:60_000]), 0xFF, 0xFF, 0xFF, 1))
	}
	set.check(t, minLimit)
	for i := range 4 {
		if conflicts(&set.ReadSet, fmt.Appendf(nil, "\x00%04d", i*2-1)) {
			t.Errorf("key %d was not read", i*2-1)
		}
	}
	var one reads
	one.SetLimit(1)
	if one.scan([]byte("a"), []byte("b")); one.coarse {
		t.Error("a short range is coarse")
	}
	if one.scan(bytes.Repeat([]byte("c"), 60_000), bytes.Repeat([]byte("d"), 60_000)); !one.coarse {
		t.Error("a bound was cut off, and a conflict would not tell")
	}
	if g := shorten(Range{[]byte("\xff\xff\xff"), []byte("\xff\xff\xff\xff")}, 2); string(g.High) != "\xff\xff\xff\xff" || string(g.Low) != "\xff\xff" {
		t.Errorf("%q", g)
	}
}
