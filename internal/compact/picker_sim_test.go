package compact

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/invariants"
	"github.com/cairndb/cairn/internal/manifest"
)

// seeds is how many random cases are tried: fewer under the slow race detector.
func seeds(n uint64) uint64 {
	if invariants.Enabled {
		return n / 4
	}
	return n
}

func TestSimRandomUpdates(t *testing.T) {
	for _, n := range []uint64{50, 2000, seeds(20000)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := newSim(t, n)
			for range 3 * n {
				s.put(s.rng.Uint64N(n), 60+s.rng.Int64N(80))
			}
			s.finish(1.2)
		})
	}
}

func TestSimSequentialLoadIsWrittenOnce(t *testing.T) {
	s := newSim(t, 1)
	for k := range uint64(20000) {
		s.put(k, 100)
	}
	s.finish(1.05)
	if s.rewritten > s.flushed/10 {
		t.Errorf("%d of %d bytes were rewritten", s.rewritten, s.flushed)
	}
}

func TestSimSequentialLoadWithCodecIsWrittenTwice(t *testing.T) {
	s := newSim(t, 1)
	s.in.Codecs = true
	for k := range uint64(20000) {
		s.put(k, 100)
	}
	s.finish(1.05)
	if s.rewritten > s.flushed*12/10 {
		t.Errorf("%d of %d bytes were rewritten", s.rewritten, s.flushed)
	}
}

// What little memory flushes in the order of keys comes down in small tables. They are joined while the load goes on, so
// that there are not many, in the last level and above it, and each row is joined a few times only.
func TestSimSequentialLoadOfSmallTables(t *testing.T) {
	for _, codecs := range []bool{false, true} {
		s, levels := newSim(t, 2), 0
		s.in.Codecs, s.memLimit = codecs, s.in.TargetFileBytes/40
		for k := range uint64(8000) {
			s.put(k, 100)
			levels = max(levels, s.v.NumRuns()-len(s.v.L0))
			if n, most := s.v.NumTables(), int(2*s.total()/s.in.TargetFileBytes)+levels*(manySmall+1)+DefaultMaxRuns; n > most {
				t.Fatalf("%d tables, want at most %d, of\n%s", n, most, s.v)
			}
		}
		if levels < 2 {
			t.Error("only one level was used")
		}
		if write := float64(s.rewritten) / float64(s.flushed); write > 2.5 {
			t.Errorf("write amplification %.1f", write)
		}
		t.Logf("codecs %v: %d bytes flushed, %d rewritten, %d levels, %d tables", codecs, s.flushed, s.rewritten, levels, s.v.NumTables())
		s.finish(1.05)
	}
}

func TestSimDeletesFreeSpace(t *testing.T) {
	for _, share := range []uint64{1, 2, 4, 20} {
		t.Run(fmt.Sprint("one in ", share), func(t *testing.T) {
			s := newSim(t, share)
			const n = 5000
			for k := range uint64(n) {
				s.put(k*7919%n, 200)
			}
			for k := range uint64(n / share) {
				s.delete(k * share)
			}
			s.finish(1.2)
			if share == 1 && s.v.NumTables() != 0 {
				t.Errorf("everything was deleted, but there is\n%s", s.v)
			}
		})
	}
}

func TestSimRangeDeletesFreeSpace(t *testing.T) {
	s := newSim(t, 4)
	for k := range uint64(10000) {
		s.put(k*7919%10000, 100)
	}
	s.deleteRange(1000, 9000)
	s.finish(1.2)
	if s.reasons[ReasonRangeDeletes] == 0 {
		t.Error("no job for the sake of a range delete")
	}
	for level, m := range s.v.Tables() {
		if m.RangeDeletes > 0 {
			t.Errorf("table %d of level %d still has a range delete", m.Num, level)
		}
	}
}

// One small value hides a large one: bytes alone do not show the garbage.
func TestSimSmallValuesOverLargeOnes(t *testing.T) {
	s := newSim(t, 5)
	for k := range uint64(3000) {
		s.put(k*7919%3000, 500)
	}
	s.settle(true)
	for k := range uint64(900) {
		s.put(k*3, 10)
	}
	s.finish(1.2)
}

func TestSimMixedWithSnapshots(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSim(t, seed)
			s.in.Codecs = seed%2 == 0
			n := 200 + s.rng.Uint64N(1500)
			for range 4000 {
				s.step(n)
			}
			s.finish(1.2) // with snapshots: no demands on space
			s.snapshots = nil
			s.finish(1.2)
		})
	}
}

func (s *sim) step(n uint64) {
	k := s.rng.Uint64N(n)
	switch x := s.rng.IntN(1000); {
	case x < 700:
		s.put(k, 20+s.rng.Int64N(150))
	case x < 900:
		s.delete(k)
	case x < 910:
		s.deleteRange(k, k+1+s.rng.Uint64N(n/10))
	case x < 915:
		s.ingest(k, 1+s.rng.Uint64N(100))
	case x < 918:
		s.settle(true)
		s.verify([]uint64{k, k / 2, k + 1})
	case x < 930 && len(s.snapshots) < 4:
		s.snapshots = append(s.snapshots, s.seq)
	case x < 940 && len(s.snapshots) > 0:
		i := s.rng.IntN(len(s.snapshots))
		s.snapshots = slices.Delete(s.snapshots, i, i+1)
	case x < 950:
		s.flush()
		s.settle(false)
	default:
		s.verify([]uint64{k})
	}
}

// A store that is opened, changed a little and closed many times does not rewrite
// its base level each time, nor end up with a table per close.
func TestSimTinyFlushes(t *testing.T) {
	s := newSim(t, 9)
	const n = 4000
	for k := range uint64(n) {
		s.put(k*7919%n, 100)
	}
	s.flush()
	s.settle(true)
	s.flushed, s.rewritten = 0, 0
	for range 1000 {
		s.put(s.rng.Uint64N(n), 100)
		s.flush()
		s.settle(false)
	}
	write := float64(s.rewritten) / float64(s.flushed)
	t.Logf("write amplification of tiny flushes: %.1f", write)
	if write > 15 {
		t.Errorf("write amplification %.1f", write)
	}
	s.finish(1.2)
}

func TestSimTinyAppendsAreJoined(t *testing.T) {
	s := newSim(t, 10)
	s.in.Codecs = true
	for k := range uint64(2000) {
		s.put(k, 100)
		s.flush()
		s.settle(true)
	}
	s.finish(1.3)
	if n, bytes := s.v.NumTables(), s.total(); int64(n) > 3*bytes/s.in.TargetFileBytes+smallTables {
		t.Errorf("%d tables for %d bytes", n, bytes)
	}
}

// Whatever the shape a version has, working off its debt ends, changes nothing a
// reader sees, and leaves little garbage.
func TestSimRandomShapes(t *testing.T) {
	for seed := range seeds(60) {
		s := newSim(t, seed)
		s.in.Codecs = seed%3 == 0
		s.shape()
		s.finish(1.2)
		if seed%2 == 0 {
			s.snapshots = nil
			s.finish(1.2)
		}
	}
}

// shape fills levels at random, deeper ones with older rows.
func (s *sim) shape() {
	keys := 100 + s.rng.Uint64N(3000)
	for level := manifest.Bottom; level >= 0; level-- {
		for range s.rng.IntN(4) * (1 + 2*s.rng.IntN(2)) {
			if level == 0 {
				s.add(&manifest.Edit{}, 0, 0, s.randomTables(keys))
			}
		}
		if level > 0 && s.rng.IntN(3) > 0 {
			s.add(&manifest.Edit{}, level, 0, s.randomTables(keys))
		}
		if s.rng.IntN(4) == 0 {
			s.snapshots = append(s.snapshots, s.seq)
		}
	}
	s.snapshots = slices.Compact(s.snapshots)
	s.settle(false)
}

func (s *sim) randomTables(keys uint64) []*simTable {
	m := new(simTable)
	for range s.rng.Uint64N(keys) {
		s.seq++
		r := simRow{s.rng.Uint64N(keys), s.seq, base.KindPut, 20 + s.rng.Int64N(200)}
		if s.rng.IntN(5) == 0 {
			r.kind, r.size = base.KindDelete, 12
		}
		s.byKey[r.key] = append(s.byKey[r.key], r)
		m.rows = append(m.rows, r)
	}
	for range s.rng.IntN(3) {
		s.seq++
		low := s.rng.Uint64N(keys)
		r := simRange{low, low + 1 + s.rng.Uint64N(keys/5), s.seq}
		s.truth.ranges = append(s.truth.ranges, r)
		m.ranges = append(m.ranges, r)
	}
	out, _ := s.merge([]*simTable{m}, false, s.in.TargetFileBytes)
	return out
}

// A snapshot keeps tombstones in the bottom level; nothing is rewritten in vain,
// and all of it goes once the snapshot does.
func TestSimSnapshotHoldsTombstones(t *testing.T) {
	s := newSim(t, 11)
	for k := range uint64(1000) {
		s.put(k, 100)
	}
	s.flush()
	s.settle(true)
	s.snapshots = []uint64{s.seq}
	for k := range uint64(1000) {
		s.delete(k)
	}
	s.flush()
	s.settle(true)
	before := s.rewritten
	s.settle(true)
	if s.rewritten != before || s.v.NumTables() == 0 {
		t.Fatalf("%d bytes rewritten in vain, %d tables", s.rewritten-before, s.v.NumTables())
	}
	s.verify(s.allKeys())
	s.snapshots = nil
	s.finish(1.2)
	if s.v.NumTables() != 0 {
		t.Errorf("left over:\n%s", s.v)
	}
}

// putApart puts n keys in order that come to the last level as they are flushed.
func (s *sim) putApart(low, n uint64) {
	for k := low; k < low+n; k += 20 {
		t := new(simTable)
		for i := k; i < min(k+20, low+n); i++ {
			s.seq++
			r := simRow{i, s.seq, base.KindPut, 100}
			s.byKey[i] = append(s.byKey[i], r)
			t.rows = append(t.rows, r)
		}
		s.flushed += t.size()
		s.add(&manifest.Edit{}, manifest.Bottom, 0, []*simTable{t})
		s.settle(false)
	}
}

// What range deletes hide is merged away under load, however little of level 0 they are: what is put at the end goes to
// the last level as it is, and level 0 never comes to a tenth of that.
func TestSimRangeDeletesFreeSpaceUnderLoad(t *testing.T) {
	for _, held := range []bool{false, true} {
		s, end := newSim(t, 6), uint64(0)
		for range 40 {
			low := end
			s.putApart(low, 300)
			end += 300
			s.deleteRange(0, low)
			s.put(0, 30)
			s.flush()
			s.settle(false)
			if live := s.live(); !held && s.total() > 3*live {
				t.Fatalf("%d bytes of which %d live, of\n%s", s.total(), live, s.v)
			}
			if held && len(s.snapshots) == 0 { // from then on all is kept that this one sees
				s.snapshots = []uint64{s.seq}
			}
		}
		t.Logf("snapshot %v: %d bytes flushed, %d rewritten, %d left, %v", held, s.flushed, s.rewritten, s.total(), s.reasons)
		if s.rewritten > 3*s.flushed {
			t.Errorf("%d bytes were flushed and %d rewritten", s.flushed, s.rewritten)
		}
		s.finish(1.2)
	}
}

// Where most of a store is deleted and little is written from then on, it is merged without waiting for the store to rest,
// and not again when there is nothing more to free.
func TestSimDeletesOfMuchFreeSpaceUnderLoad(t *testing.T) {
	for _, ranges := range []bool{false, true} {
		s := newSim(t, 7)
		for k := range uint64(5000) {
			s.put(k, 100)
		}
		s.flush()
		s.settle(true)
		full := s.total()
		if ranges {
			s.deleteRange(0, 4500)
		}
		for k := uint64(0); k < 4500 && !ranges; k++ {
			s.delete(k)
		}
		s.flush()
		s.settle(false)
		if s.total() > full/3 {
			t.Errorf("range delete %v: %d bytes of %d are left", ranges, s.total(), full)
		}
		s.finish(1.2)
	}
}

// A queue whose keys are deleted one by one while it is written to takes space as what is in it, and is not written
// much more often for that.
func TestSimQueueFreesSpaceUnderLoad(t *testing.T) {
	s, most := newSim(t, 3), int64(0)
	const depth, size = 1000, 500
	for k := range uint64(10000) {
		if s.put(k, size); k >= depth {
			s.delete(k - depth)
		}
		most = max(most, s.total())
	}
	if most > 3*depth*size || s.rewritten > 5*s.flushed {
		t.Errorf("%d bytes for %d that live, %d flushed and %d rewritten", most, s.live(), s.flushed, s.rewritten)
	}
	s.finish(1.2)
}

// smallRowsOverLarge is a store with a last level of large rows below a base level of small ones, which does not flush by itself.
func smallRowsOverLarge(t *testing.T) *sim {
	s := newSim(t, 1)
	s.memLimit = 1 << 40
	for k := range uint64(800) {
		s.put(k*10, 1000)
		if k%20 == 19 {
			s.flush()
			s.settle(true)
		}
	}
	for i := range uint64(600) {
		s.put(i*13%8000+1, 100)
		if i%30 == 29 {
			s.flush()
			s.settle(false)
		}
	}
	if s.v.Bytes(manifest.Bottom-1) == 0 || s.v.Bytes(manifest.Bottom) == 0 {
		t.Fatalf("not two levels:\n%s", s.v)
	}
	s.flushed, s.rewritten, s.deletes = 0, 0, Account{}
	return s
}

// Deletes that hide nothing, or only what a merge of the next level does not free, do not have levels written again for ever.
func TestSimDeletesInVainAreFew(t *testing.T) {
	const few = "of keys that are not there, fewer than rows"
	for name, write := range map[string]func(*sim){
		few: func(s *sim) {
			for range 40 {
				s.delete(s.rng.Uint64N(200)*40 + 5)
			}
		},
		"of keys that are not there, as many as there are rows": func(s *sim) {
			for range 900 {
				s.delete(s.rng.Uint64N(800)*10 + 5)
			}
		},
		"of the same range, beside puts": func(s *sim) {
			s.deleteRange(1000, 1800)
			for range 6 {
				s.put(s.rng.Uint64N(200)*40+5, 20)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := smallRowsOverLarge(t)
			before := s.total()
			for range 200 {
				write(s)
				s.flush()
				s.settle(false)
			}
			if n := s.reasons[ReasonDeletes]; name == few && n > 0 {
				t.Errorf("%d merges for their sake", n)
			}
			if bound := (vainShare+freedShare)*s.flushed + before; s.rewritten > bound {
				t.Errorf("%d bytes rewritten of %d flushed and a store of %d, more than %d: %v", s.rewritten, s.flushed, before, bound, s.reasons)
			}
		})
	}
}

// Nor do they where there are pauses that are shorter than a second, however small the store is, and whether a snapshot keeps what
// they hide or not; what is left then goes once nobody writes.
func TestSimDeletesInVainAreFewInPauses(t *testing.T) {
	for _, c := range []struct {
		name     string
		rows     uint64
		snapshot bool
		write    func(*sim)
	}{
		{"of keys that are not there", 12, false, func(s *sim) {
			for k := range uint64(8) {
				s.delete(k*10 + 5)
			}
		}},
		{"of keys that are not there, beside puts", 12, false, func(s *sim) {
			for k := range uint64(4) {
				s.delete(k*10 + 5)
				s.put(k*10+6, 12)
			}
		}},
		{"of the same rows, which a snapshot sees", 12, true, func(s *sim) {
			for k := range uint64(8) {
				s.delete(k * 10)
			}
		}},
		{"of a larger store", 100, false, func(s *sim) {
			for range 60 {
				s.delete(s.rng.Uint64N(100)*10 + 5)
			}
		}},
		{"of rows of a larger store, which a snapshot sees", 100, true, func(s *sim) {
			for range 60 {
				s.delete(s.rng.Uint64N(100) * 10)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t, 1)
			s.memLimit = 1 << 40
			for k := range c.rows {
				s.put(k*10, 1000)
			}
			s.flush()
			s.settle(true)
			if c.snapshot {
				s.snapshots = []uint64{s.seq}
			}
			s.flushed, s.rewritten = 0, 0
			before := s.total()
			for range 200 {
				c.write(s)
				s.flush()
				s.settle(false)
				s.settle(true)
			}
			each := int64(DefaultMultiplier + vainShare)
			if bound := each*s.flushed + max(s.in.BaseBytes, before/vainStore) + before; s.rewritten > bound {
				t.Errorf("%d bytes rewritten of %d flushed and a store of %d, more than %d: %v", s.rewritten, s.flushed, before, bound, s.reasons)
			}
			s.snapshots, s.in.Thorough = nil, true
			s.settle(true)
			for level, m := range s.v.Tables() {
				if m.Deletes > 0 && c.rows < 16 {
					t.Errorf("at rest %d deletes are left in level %d", m.Deletes, level)
				}
			}
		})
	}
}

// What deletes hide goes whenever nobody has written for a second, once, and what that writes in vain is nothing that later deletes
// have to wait for under load.
func TestSimDeletesInVainWhileNobodyWrites(t *testing.T) {
	s := smallRowsOverLarge(t)
	before := s.total()
	for range 200 {
		for k := range uint64(60) { // of keys that are not there, in a small part of the store
			s.delete(k*10 + 5)
		}
		s.flush()
		s.settle(false)
		s.settle(true)
		s.in.Thorough = true
		s.settle(true)
		written := s.rewritten
		if s.settle(true); s.rewritten > written {
			t.Fatalf("%d bytes were written again though nobody had written", s.rewritten-written)
		}
		s.in.Thorough = false
	}
	if inVain, most := s.deletes.InVain(s.flushed), max(s.in.BaseBytes, before/vainStore)+before/4; inVain > most {
		t.Errorf("%d bytes in vain are to be paid for, more than %d, of a store of %d: %v", inVain, most, before, s.reasons)
	}
	for k := range uint64(760) {
		s.delete(k * 10)
		s.put(k*10+1, 20)
		if k%20 == 19 {
			s.flush()
			s.settle(false)
		}
	}
	if s.total() > before*2/3 {
		t.Errorf("%d bytes of %d are left under load, %d live", s.total(), before, s.live())
	}
}

// Deletes free space under load also where most rows beside them are puts of something small.
func TestSimDeletesAmongPutsFreeSpace(t *testing.T) {
	for _, puts := range []int{0, 1, 2, 4} {
		s := newSim(t, 1)
		s.memLimit = 2000
		for k := range uint64(1000) {
			s.put(k*10, 2000)
		}
		s.flush()
		s.settle(true)
		full := s.total()
		for k := range uint64(950) {
			s.delete(k * 10)
			for i := range puts {
				s.put(k*10+1+uint64(i), 20)
			}
		}
		s.flush()
		s.settle(false)
		if s.total() > 3*s.live() {
			t.Errorf("%d puts beside each delete: %d bytes, of them %d live, were %d\n%s", puts, s.total(), s.live(), full, s.v)
		}
	}
}

func TestAccountOfDeletes(t *testing.T) {
	var a Account
	job := func(hiding, move bool) *Job {
		return &Job{Hiding: hiding, Move: move, Inputs: []Input{{0, []*base.TableMeta{{Size: 1000}}}}}
	}
	check := func(what string, flushed, want int64) {
		t.Helper()
		if got := a.InVain(flushed); got != want {
			t.Errorf("%s: %d bytes in vain, want %d", what, got, want)
		}
	}
	check("new", 0, 0)
	a.Note(job(true, false), 1000, 50)
	check("nothing freed", 50, 1000)
	check("flushed since", 150, 1000-vainShare*100)
	a.Note(job(true, false), 900, 150)
	check("a little freed", 150, 1000-vainShare*100+900-freedShare*100)
	a.Note(job(false, false), 1000, 150)
	a.Note(job(true, true), 0, 150)
	check("not for deletes, or moved", 150, 1300)
	a.Note(job(true, false), 100, 160)
	check("much freed", 160, 0)
	check("never less than nothing", 1<<40, 0)
}
