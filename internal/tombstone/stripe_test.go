package tombstone

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// everySubset calls f with each ascending list of numbers in 1..n.
func everySubset(n int, f func(s Stripes)) {
	for bits := range 1 << n {
		var s Stripes
		for i := range n {
			if bits>>i&1 == 1 {
				s = append(s, uint64(i+1))
			}
		}
		f(s)
	}
}

func TestSameStripeMeansNoSnapshotBetween(t *testing.T) {
	everySubset(7, func(s Stripes) {
		for a := range uint64(9) {
			for b := a; b < 9; b++ {
				apart := slices.ContainsFunc(s, func(snap uint64) bool { return a <= snap && snap < b })
				if s.Same(a, b) == apart || s.Same(b, a) == apart {
					t.Fatalf("snapshots %v: Same(%d, %d)=%v", s, a, b, !apart)
				}
			}
			ceiling := s.Ceiling(a)
			if !s.Same(a, ceiling) || ceiling != ^uint64(0) && s.Same(a, ceiling+1) {
				t.Fatalf("snapshots %v: Ceiling(%d)=%d", s, a, ceiling)
			}
		}
	})
}

// readers are the snapshots and one that sees everything.
func readers(s Stripes) []uint64 { return append(slices.Clone(s), ^uint64(0)) }

func newest(seqs []uint64, snapshot uint64) uint64 {
	for _, q := range seqs {
		if q <= snapshot {
			return q
		}
	}
	return 0
}

// Every reader must find the same newest sequence in what is kept, and nothing
// may be kept that no reader finds.
func TestNewestKeepsWhatSomeReaderSees(t *testing.T) {
	everySubset(6, func(s Stripes) {
		everySubset(7, func(seqs Stripes) {
			slices.Reverse(seqs)
			kept := s.Newest(nil, seqs, false)
			bottom := s.Newest(nil, seqs, true)
			found := map[uint64]bool{}
			for _, snap := range readers(s) {
				want := newest(seqs, snap)
				found[want] = true
				if got := newest(kept, snap); got != want {
					t.Fatalf("snapshots %v sequences %v kept %v: reader %d finds %d, want %d", s, seqs, kept, snap, got, want)
				}
				if s.Of(want) == 0 {
					want = 0
				}
				if got := newest(bottom, snap); got != want {
					t.Fatalf("snapshots %v sequences %v bottom %v: reader %d finds %d, want %d", s, seqs, bottom, snap, got, want)
				}
			}
			for _, q := range kept {
				if !found[q] {
					t.Fatalf("snapshots %v: kept %d of %v for nobody", s, q, seqs)
				}
			}
		})
	})
}

func TestRetain(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		m := model{}
		for range 12 {
			ts := randomTombstone(r)
			ts.Seq &= base.MaxSeq
			ts.Seq++
			m = append(m, ts)
		}
		var s Stripes
		for range r.IntN(4) {
			s = append(s, r.Uint64N(33))
		}
		slices.Sort(s)
		for name, l := range forms(m) {
			checkRetain(t, fmt.Sprint(seed, name), l, s, false)
			checkRetain(t, fmt.Sprint(seed, name), l, s, true)
		}
	}
}

func checkRetain(t *testing.T, name string, l *List, s Stripes, bottom bool) {
	t.Helper()
	kept := l.Retain(s, bottom)
	for i := range probes {
		for _, snap := range readers(s) {
			vis := base.Visibility{Snapshot: snap}
			want := l.Cover(probe(i), vis)
			if bottom && s.Of(want) == 0 {
				want = 0
			}
			if got := kept.Cover(probe(i), vis); got != want {
				t.Fatalf("%s snapshots %v bottom %v: %s at %d: %d, want %d", name, s, bottom, probe(i), snap, got, want)
			}
		}
	}
	for f := range kept.Fragments() {
		if len(f.Seqs) > len(s)+1 {
			t.Fatalf("%s: kept %v for snapshots %v", name, f.Seqs, s)
		}
	}
}

// version is one version of a single key.
type version struct {
	seq  uint64
	kind base.Kind
}

// read returns what a reader finds: the sequence of a live put, else 0.
func read(vs []version, tombs []uint64, below, snap uint64) uint64 {
	hidden := newest(tombs, snap)
	for _, v := range vs {
		if v.seq <= snap {
			if v.kind == base.KindPut && v.seq > hidden {
				return v.seq
			}
			return 0
		}
	}
	if below > hidden {
		return below
	}
	return 0
}

// TestPruner compacts every history of five entries (put, delete, range delete,
// nothing) under every set of snapshots, with and without an older put below,
// and compares what each reader finds before and after.
func TestPruner(t *testing.T) {
	const n = 5
	everySubset(n+1, func(s Stripes) {
		for code := range 1 << (2 * n) {
			var vs []version
			var tombs []uint64
			for i := n; i > 0; i-- {
				seq := uint64(i + 1)
				switch code >> (2 * (i - 1)) & 3 {
				case 0:
					vs = append(vs, version{seq, base.KindPut})
				case 1:
					vs = append(vs, version{seq, base.KindDelete})
				case 2:
					tombs = append(tombs, seq)
				}
			}
			prune(t, s, vs, tombs, true, 0)
			prune(t, s, vs, tombs, false, 0)
			prune(t, s, vs, tombs, false, 1)
		}
	})
}

func prune(t *testing.T, s Stripes, vs []version, tombs []uint64, bottom bool, below uint64) {
	t.Helper()
	p := Pruner{Stripes: s}
	p.NextKey()
	var kept []version
	for _, v := range vs {
		if p.Keep(v.seq, newest(tombs, p.Ceiling(v.seq).Snapshot)) {
			kept = append(kept, v)
		}
	}
	keptTombs := s.Newest(nil, tombs, bottom)
	for _, snap := range readers(s) {
		want, got := read(vs, tombs, below, snap), read(kept, keptTombs, below, snap)
		if got != want {
			t.Fatalf("snapshots %v versions %v tombstones %v bottom %v below %d: kept %v %v: reader %d finds %d, want %d",
				s, vs, tombs, bottom, below, kept, keptTombs, snap, got, want)
		}
	}
	if len(kept) > len(s)+1 {
		t.Fatalf("snapshots %v: kept %v", s, kept)
	}
}

func TestPrunerNextKeyForgetsTheLast(t *testing.T) {
	p := Pruner{}
	if !p.Keep(5, 0) || p.Keep(4, 0) {
		t.Fatal("first key")
	}
	if p.NextKey(); !p.Keep(3, 0) {
		t.Fatal("second key")
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte{0, 9, 3, 4, 12, 5}, uint8(4))
	f.Fuzz(func(t *testing.T, ops []byte, snap uint8) {
		m := model{}
		for ; len(ops) >= 3 && len(m) < 40; ops = ops[3:] {
			seq := uint64(ops[2])
			if seq >= 200 {
				seq = base.SeqPrivate | (seq - 200)
			}
			m = append(m, Tombstone{probe(2 * (int(ops[0]) % 20)), probe(2 * (int(ops[1]) % 20)), seq})
		}
		r := rand.New(rand.NewPCG(uint64(snap), 5))
		for _, l := range forms(m) {
			check(t, r, l, m)
		}
	})
}

// TestHides: a table is hidden exactly if a merge drops whatever row it may have.
func TestHides(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 10))
		m := model{}
		for range 1 + r.IntN(20) {
			ts := randomTombstone(r)
			ts.Seq = ts.Seq&base.MaxSeq + 1
			m = append(m, ts)
		}
		var s Stripes
		for range r.IntN(4) {
			s = append(s, r.Uint64N(33))
		}
		slices.Sort(s)
		low := r.IntN(probes)
		last, exclusive := low+r.IntN(min(10, probes-low)), r.IntN(2) == 0
		meta := &base.TableMeta{Smallest: probe(low), Largest: probe(last), MinSeq: r.Uint64N(20)}
		meta.MaxSeq = meta.MinSeq + r.Uint64N(6)
		if meta.LargestExclusive = exclusive && last > low; meta.LargestExclusive {
			last--
		}
		want := true
		for i := low; i <= last; i++ {
			for seq := meta.MinSeq; seq <= meta.MaxSeq; seq++ {
				want = want && m.cover(probe(i), base.Visibility{Snapshot: s.Ceiling(seq)}) > seq
			}
		}
		found[want]++
		for name, l := range forms(m) {
			if got := l.Hides(meta, s); got != want {
				t.Fatalf("seed %d, %s: %s to %s (%v), sequences %d to %d, snapshots %v: %v of %v", seed, name, meta.Smallest, meta.Largest, exclusive, meta.MinSeq, meta.MaxSeq, s, got, m)
			}
		}
	}
	if found[true] < 100 || found[false] < 100 {
		t.Errorf("%d hidden, %d not", found[true], found[false])
	}
	if new(List).Hides(&base.TableMeta{}, nil) || (*List)(nil).Hides(&base.TableMeta{}, nil) {
		t.Error("hidden by nothing")
	}
}
