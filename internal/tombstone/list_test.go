package tombstone

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// model answers by looking at every tombstone.
type model []Tombstone

func (m model) cover(key []byte, vis base.Visibility) uint64 {
	var seq uint64
	for _, t := range m {
		if t.Contains(key) && vis.Sees(t.Seq) {
			seq = max(seq, t.Seq)
		}
	}
	return seq
}

func (m model) seqsAt(key []byte) []uint64 {
	var seqs []uint64
	for _, t := range m {
		if t.Contains(key) {
			seqs = append(seqs, t.Seq)
		}
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	return slices.Compact(seqs)
}

const probes = 40

// probe returns the i-th test key; bounds are made of the even ones, so that the
// odd ones lie between.
func probe(i int) []byte { return fmt.Appendf(nil, "k%03d", i) }

func randomTombstone(r *rand.Rand) Tombstone {
	seq := 1 + r.Uint64N(30)
	if r.IntN(4) == 0 {
		seq = base.SeqPrivate | r.Uint64N(6)
	}
	return Tombstone{probe(2 * r.IntN(probes/2)), probe(2 * r.IntN(probes/2)), seq}
}

func randomVisibility(r *rand.Rand) base.Visibility {
	v := base.Visibility{Snapshot: r.Uint64N(35)}
	switch r.IntN(4) {
	case 0:
		v.PrivateLimit = base.SeqPrivate | r.Uint64N(8)
	case 1:
		v.Snapshot = ^uint64(0)
	}
	return v
}

// check compares everything l says with the model and verifies its invariants.
func check(t *testing.T, r *rand.Rand, l *List, m model) {
	t.Helper()
	for c, i := NewCursor(l), 0; i < probes; i++ {
		vis := randomVisibility(r)
		want := m.cover(probe(i), vis)
		if got := l.Cover(probe(i), vis); got != want {
			t.Fatalf("Cover(%s, %+v)=%d, want %d of %v", probe(i), vis, got, want, m)
		}
		if got := c.Cover(probe(i), vis); got != want {
			t.Fatalf("Cursor.Cover(%s, %+v)=%d, want %d of %v", probe(i), vis, got, want, m)
		}
	}
	checkFragments(t, l, m)
	checkBounds(t, l, m)
}

func checkFragments(t *testing.T, l *List, m model) {
	t.Helper()
	at := map[string][]uint64{}
	var prev Fragment
	total := 0
	for f := range l.Fragments() {
		total += len(f.Seqs)
		if bytes.Compare(f.Low, f.High) >= 0 || bytes.Compare(prev.High, f.Low) > 0 || len(f.Seqs) == 0 {
			t.Fatalf("fragment %v after %v", f, prev)
		}
		if bytes.Equal(prev.High, f.Low) && slices.Equal(prev.Seqs, f.Seqs) {
			t.Fatalf("fragments %v and %v should be one", prev, f)
		}
		for i := range probes {
			if k := probe(i); bytes.Compare(f.Low, k) <= 0 && bytes.Compare(k, f.High) < 0 {
				at[string(k)] = slices.Clone(f.Seqs)
			}
		}
		prev = Fragment{f.Low, f.High, slices.Clone(f.Seqs)}
	}
	if l.Len() != total {
		t.Fatalf("Len %d, the fragments have %d", l.Len(), total)
	}
	for i := range probes {
		if want := m.seqsAt(probe(i)); !slices.Equal(at[string(probe(i))], want) {
			t.Fatalf("at %s sequences %v, want %v", probe(i), at[string(probe(i))], want)
		}
		var all []uint64
		for ts := range l.All() {
			if ts.Contains(probe(i)) {
				all = append(all, ts.Seq)
			}
		}
		if slices.Sort(all); !slices.Equal(slices.Compact(all), slices.Sorted(slices.Values(m.seqsAt(probe(i))))) {
			t.Fatalf("at %s All has %v, want %v", probe(i), all, m.seqsAt(probe(i)))
		}
	}
}

func checkBounds(t *testing.T, l *List, m model) {
	t.Helper()
	var low, high []byte
	for _, ts := range m {
		if ts.Empty() {
			continue
		}
		if low == nil || bytes.Compare(ts.Low, low) < 0 {
			low = ts.Low
		}
		if bytes.Compare(ts.High, high) > 0 {
			high = ts.High
		}
	}
	if !bytes.Equal(l.FirstLow(), low) || !bytes.Equal(l.LastHigh(), high) || l.Empty() != (low == nil) {
		t.Fatalf("bounds %s %s, want %s %s", l.FirstLow(), l.LastHigh(), low, high)
	}
}

// forms returns the same tombstones built in every way there is.
func forms(ts []Tombstone) map[string]*List {
	f := map[string]*List{"built": Build(ts)}
	half := len(ts) / 2
	f["merged"] = Merge(Build(ts[:half]), nil, Build(ts[half:]))
	if spans := normalise(ts); len(spans) > 0 {
		_, total := measure(edgesOf(spans))
		f["nested"] = &List{nest: newNest(spans, edgesOf(spans)), total: total}
	}
	return f
}

func TestListAgainstModel(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := model{}
		for range r.IntN(14) {
			m = append(m, randomTombstone(r))
		}
		for name, l := range forms(m) {
			t.Run(fmt.Sprintf("%d/%s", seed, name), func(t *testing.T) { check(t, r, l, m) })
		}
	}
}

func TestClip(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		m := model{}
		for range 1 + r.IntN(10) {
			m = append(m, randomTombstone(r))
		}
		low, high := probe(r.IntN(probes)), probe(r.IntN(probes))
		if r.IntN(6) == 0 {
			low = nil
		}
		if r.IntN(6) == 0 {
			high = nil
		}
		clipped := model{}
		for _, ts := range m {
			if low != nil && bytes.Compare(ts.Low, low) < 0 {
				ts.Low = low
			}
			if high != nil && bytes.Compare(ts.High, high) > 0 {
				ts.High = high
			}
			clipped = append(clipped, ts)
		}
		for _, l := range forms(m) {
			check(t, r, l.Clip(low, high), clipped)
		}
	}
}

func TestEmptyList(t *testing.T) {
	for name, l := range map[string]*List{
		"nil":      nil,
		"built":    Build(nil),
		"inverted": Build([]Tombstone{{[]byte("b"), []byte("a"), 3}, {[]byte("a"), []byte("a"), 4}}),
		"merged":   Merge(nil, nil),
	} {
		c := NewCursor(l)
		if !l.Empty() || l.Len() != 0 || l.Cover([]byte("a"), base.Visibility{Snapshot: 9}) != 0 ||
			c.Cover([]byte("a"), base.Visibility{Snapshot: 9}) != 0 ||
			l.FirstLow() != nil || l.LastHigh() != nil || l.Clip(nil, nil) != nil || l.Retain(nil, false) != nil {
			t.Fatalf("%s: not empty: %v", name, l)
		}
		for range l.All() {
			t.Fatal("yields something")
		}
	}
}

func nested(n int) []Tombstone {
	var ts []Tombstone
	for i := range n {
		ts = append(ts, Tombstone{fmt.Appendf(nil, "%08d", i), fmt.Appendf(nil, "%08d", 3*n-i), uint64(i + 1)})
	}
	return ts
}

func TestNestedTombstonesTakeLinearithmicMemory(t *testing.T) {
	const n = 20000
	l := Build(nested(n))
	if l.nest == nil {
		t.Fatal("stored flat")
	}
	if len(l.nest.seqs) > n*32 {
		t.Fatalf("%d sequences stored for %d tombstones", len(l.nest.seqs), n)
	}
	all := base.Visibility{Snapshot: base.MaxSeq}
	for i := 0; i < n; i += 97 {
		if got := l.Cover(fmt.Appendf(nil, "%08d", i), all); got != uint64(i+1) {
			t.Fatalf("cover at %d: %d", i, got)
		}
		if got := l.Cover(fmt.Appendf(nil, "%08d", 2*n), base.Visibility{Snapshot: uint64(i)}); got != uint64(i) {
			t.Fatalf("cover of all at snapshot %d: %d", i, got)
		}
	}
	kept := l.Retain(Stripes{n / 2}, false)
	if kept.Len() > 4*n {
		t.Fatalf("%d tombstones kept", kept.Len())
	}
	if again := Merge(l, kept); again.Len() != l.Len() {
		t.Fatalf("merging repeats made %d of %d", again.Len(), l.Len())
	}
}

// TestRetainOfNestedTombstones: where each has a snapshot all are kept, each once with its whole range, though every cell has
// other ones.
func TestRetainOfNestedTombstones(t *testing.T) {
	const n = 1000
	var s Stripes
	for i := range n {
		s = append(s, uint64(i))
	}
	if kept := len(Build(nested(n)).nest.retain(s, false)); kept != n {
		t.Errorf("%d tombstones kept of %d", kept, n)
	}
}

func TestRepeatedMergingDoesNotGrowTheList(t *testing.T) {
	l := Build(nested(30)) // flat, but repeats its sequences
	if l.nest != nil {
		t.Fatal("nested")
	}
	for range 5 {
		l = Merge(l, Build(nested(30)))
	}
	if len(l.Spans()) != 30 || l.Len() != 30*30 {
		t.Fatalf("%d spans, %d in fragments", len(l.Spans()), l.Len())
	}
}

func TestCoverDoesNotAllocate(t *testing.T) {
	flat, deep := Build(nested(20)), Build(nested(2000))
	c := NewCursor(flat, deep)
	key, vis := []byte("00000010"), base.Visibility{Snapshot: 15}
	if n := testing.AllocsPerRun(100, func() {
		flat.Cover(key, vis)
		deep.Cover(key, vis)
		c.Cover(key, vis)
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestCursorJumpsAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	m := model{}
	for range 12 {
		m = append(m, randomTombstone(r))
	}
	cursors := []*Cursor{NewCursor(Build(m[:3]), forms(m[3:7])["nested"], nil, Build(m[7:]))}
	for _, l := range forms(m) {
		cursors = append(cursors, NewCursor(l))
	}
	for _, c := range cursors {
		for range 2000 {
			k, vis := probe(r.IntN(probes)), randomVisibility(r)
			if got, want := c.Cover(k, vis), m.cover(k, vis); got != want {
				t.Fatalf("%s: %d, want %d", k, got, want)
			}
		}
	}
}

func TestEarlyStopOfIteration(t *testing.T) {
	for _, l := range forms(nested(3)) {
		for ts := range l.All() {
			if ts.Seq != 1 {
				t.Fatal(ts)
			}
			break
		}
	}
}
