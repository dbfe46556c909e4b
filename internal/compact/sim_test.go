package compact

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// The simulator runs jobs on tables that are lists of rows in memory, and knows
// what every reader ought to see.

type simRow struct {
	key, seq uint64
	kind     base.Kind
	size     int64
}

type simRange struct{ low, high, seq uint64 }

type simTable struct {
	rows   []simRow   // key ascending, sequence descending
	ranges []simRange // in any order
}

const simRangeBytes = 40

func (t *simTable) size() int64 {
	n := int64(64 + simRangeBytes*len(t.ranges))
	for _, r := range t.rows {
		n += r.size
	}
	return n
}

func simKey(k uint64) []byte { return binary.BigEndian.AppendUint64([]byte{0}, k) }

// meta describes the table as the engine would.
func (t *simTable) meta(num uint64) *base.TableMeta {
	m := &base.TableMeta{Num: num, Size: t.size(), MinSeq: base.MaxSeq}
	low, high := ^uint64(0), uint64(0) // high is exclusive
	seen := func(seq uint64) { m.MinSeq, m.MaxSeq = min(m.MinSeq, seq), max(m.MaxSeq, seq) }
	for _, r := range t.rows {
		low, high = min(low, r.key), max(high, r.key+1)
		m.Entries++
		if r.kind == base.KindDelete {
			m.Deletes++
		}
		seen(r.seq)
	}
	for _, r := range t.ranges {
		low, high = min(low, r.low), max(high, r.high)
		m.RangeDeletes++
		seen(r.seq)
	}
	m.Smallest, m.Largest, m.LargestExclusive = simKey(low), simKey(high), true
	if n := len(t.rows); n > 0 && t.rows[n-1].key+1 == high {
		m.Largest, m.LargestExclusive = simKey(high-1), false
	}
	return m
}

type sim struct {
	t      *testing.T
	rng    *rand.Rand
	in     Inputs
	v      *manifest.Version
	tables map[uint64]*simTable
	num    uint64

	seq       uint64
	snapshots []uint64 // ascending
	mem       simTable
	memLimit  int64
	truth     simTable // every row and range ever written; rows in order of writing
	byKey     map[uint64][]simRow

	flushed, rewritten  int64 // bytes
	jobs, moves, fitted int
	reasons             map[Reason]int
	deletes             Account
}

func newSim(t *testing.T, seed uint64) *sim {
	return &sim{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), v: new(manifest.Version), tables: map[uint64]*simTable{},
		byKey: map[uint64][]simRow{}, reasons: map[Reason]int{}, memLimit: 8 << 10,
		in: Inputs{TargetFileBytes: 4 << 10, BaseBytes: 16 << 10, Leftovers: map[uint64]Leftover{}},
	}
}

func (s *sim) oldest() uint64 {
	if len(s.snapshots) > 0 {
		return s.snapshots[0]
	}
	return s.seq
}

func (s *sim) note(r simRow) {
	s.byKey[r.key] = append(s.byKey[r.key], r)
	s.mem.rows = append(s.mem.rows, r)
}

func (s *sim) put(key uint64, size int64) {
	s.seq++
	s.note(simRow{key, s.seq, base.KindPut, size})
	s.maybeFlush()
}

func (s *sim) delete(key uint64) {
	s.seq++
	s.note(simRow{key, s.seq, base.KindDelete, 12})
	s.maybeFlush()
}

func (s *sim) deleteRange(low, high uint64) {
	s.seq++
	r := simRange{low, high, s.seq}
	s.truth.ranges = append(s.truth.ranges, r)
	s.mem.ranges = append(s.mem.ranges, r)
	s.maybeFlush()
}

// ingest adds a run to level 0 whose rows share one sequence, behind the memtable that is older.
func (s *sim) ingest(low, n uint64) {
	s.flush()
	s.seq++
	t := new(simTable)
	for k := low; k < low+n; k++ {
		r := simRow{k, s.seq, base.Kind(s.rng.IntN(2)), 50}
		s.byKey[k] = append(s.byKey[k], r)
		t.rows = append(t.rows, r)
	}
	s.add(&manifest.Edit{}, 0, 0, []*simTable{t})
}

func (s *sim) maybeFlush() {
	if s.mem.size() >= s.memLimit {
		s.flush()
		s.settle(false)
	}
}

func (s *sim) flush() {
	if len(s.mem.rows)+len(s.mem.ranges) == 0 {
		return
	}
	out, _ := s.merge([]*simTable{&s.mem}, false, s.in.TargetFileBytes)
	s.mem = simTable{}
	for _, t := range out {
		s.flushed += t.size()
	}
	s.add(&manifest.Edit{}, 0, 0, out)
}

// add puts tables into a level by an edit that may do other things as well.
func (s *sim) add(e *manifest.Edit, level int, run uint64, tables []*simTable) {
	if level == 0 && run == 0 {
		run = s.num + 1
	}
	for _, t := range tables {
		s.num++
		s.tables[s.num] = t
		e.Added = append(e.Added, manifest.Added{Level: level, Run: run, Table: t.meta(s.num)})
	}
	s.apply(e)
}

func (s *sim) apply(e *manifest.Edit) {
	v, err := s.v.Apply(e)
	if err != nil {
		s.t.Fatalf("edit %+v on\n%s: %v", e, s.v, err)
	}
	s.v = v
}

// stripe numbers the gaps between snapshots; rows in one stripe cannot be told apart.
func (s *sim) stripe(seq uint64) int {
	i, _ := slices.BinarySearch(s.snapshots, seq)
	return i
}

// merge is what Merge does to rows: it returns the tables and, per table, what was
// kept for snapshots only.
func (s *sim) merge(in []*simTable, bottom bool, target int64) (out []*simTable, left []Leftover) {
	var rows []simRow
	var ranges []simRange
	for _, t := range in {
		rows, ranges = append(rows, t.rows...), append(ranges, t.ranges...)
	}
	slices.SortFunc(rows, func(a, b simRow) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(b.seq, a.seq)) })
	gone := func(seq uint64) bool { return bottom && seq <= s.oldest() }
	cur, l, low := new(simTable), Leftover{}, uint64(0)
	cut := func(high uint64) {
		for _, r := range ranges {
			if c := (simRange{max(r.low, low), min(r.high, high), r.seq}); c.low < c.high && !gone(r.seq) {
				cur.ranges = append(cur.ranges, c)
			}
		}
		if len(cur.rows)+len(cur.ranges) > 0 {
			out, left = append(out, cur), append(left, l)
		}
		cur, l, low = new(simTable), Leftover{}, high
	}
	size := int64(0)
	for i, r := range rows {
		first := i == 0 || rows[i-1].key != r.key
		if first && size >= target {
			cut(r.key)
			size = 0
		}
		newer, hidden := s.newest(ranges, r), false
		if !first {
			newer = max(newer, rows[i-1].seq)
			hidden = s.stripe(rows[i-1].seq) == s.stripe(r.seq)
		}
		if c := s.newestIn(ranges, r); hidden || c || r.kind == base.KindDelete && gone(r.seq) {
			continue
		}
		if newer > r.seq {
			l.Keep(Kept{r.seq, newer - 1, r.size})
		}
		cur.rows = append(cur.rows, r)
		size += r.size
	}
	cut(^uint64(0))
	return out, left
}

// newest returns the sequence of the newest range over row r, newestIn whether one
// newer than r is in its stripe.
func (s *sim) newest(ranges []simRange, r simRow) (seq uint64) {
	for _, d := range ranges {
		if d.low <= r.key && r.key < d.high {
			seq = max(seq, d.seq)
		}
	}
	return seq
}

func (s *sim) newestIn(ranges []simRange, r simRow) bool {
	return slices.ContainsFunc(ranges, func(d simRange) bool {
		return d.low <= r.key && r.key < d.high && d.seq > r.seq && s.stripe(d.seq) == s.stripe(r.seq)
	})
}

func (s *sim) inputs(idle bool) Inputs {
	in := s.in
	in.InVain = s.deletes.InVain(s.flushed)
	in.Idle, in.Readers = idle, append(slices.Clone(s.snapshots), s.seq)
	in.Tombstones = map[uint64]*tombstone.List{}
	for _, m := range s.v.Tables() {
		if m.RangeDeletes > 0 {
			var spans []tombstone.Tombstone
			for _, r := range s.tables[m.Num].ranges {
				spans = append(spans, tombstone.Tombstone{Low: simKey(r.low), High: simKey(r.high), Seq: r.seq})
			}
			in.Tombstones[m.Num] = tombstone.Build(spans)
		}
	}
	return in
}

// settle runs jobs until there is none. It fails if that takes too long or a job
// does not get anywhere.
func (s *sim) settle(idle bool) {
	s.t.Helper()
	limit := 100 + 30*s.v.NumTables()
	for n := 0; ; n++ {
		in := s.inputs(idle)
		job, ok := Pick(s.v, in)
		if debt := Debt(s.v, in); (debt > 0) != ok {
			s.t.Fatalf("debt %d but a job: %t", debt, ok)
		}
		if !ok {
			return
		}
		if n > limit {
			s.t.Fatalf("no end after %d jobs, now %s: %+v on\n%s", n, job.Reason, job, s.v)
		}
		if s.rng.IntN(3) == 0 { // on a disk that is nearly full
			in.Room = 1 + s.rng.Int64N(job.Bytes())
			if fitting, some := Pick(s.v, in); some {
				if job = fitting; !job.Move && job.Bytes() > in.Room {
					s.t.Fatalf("job of %d bytes where there is room for %d: %+v on\n%s", job.Bytes(), in.Room, job, s.v)
				}
				s.fitted++
			}
		}
		if s.rng.IntN(3) == 0 { // of what is due as well or not
			if other, some := s.pickReadable(in); some {
				job = other
			}
		}
		s.checkJob(&job)
		s.carryOut(&job)
	}
}

// pickReadable picks a job where some tables cannot be read.
func (s *sim) pickReadable(in Inputs) (Job, bool) {
	s.t.Helper()
	in.Unreadable = map[uint64]bool{}
	for _, t := range s.v.Tables() {
		if s.rng.IntN(4) == 0 {
			in.Unreadable[t.Num] = true
		}
	}
	job, ok := Pick(s.v, in)
	for _, input := range job.Inputs {
		for _, t := range input.Tables {
			if ok && in.Unreadable[t.Num] && !job.Move {
				s.t.Fatalf("table %d cannot be read: %+v on\n%s", t.Num, job, s.v)
			}
		}
	}
	return job, ok
}

func (s *sim) carryOut(job *Job) {
	s.t.Helper()
	s.jobs++
	s.reasons[job.Reason]++
	e := &manifest.Edit{}
	var tables []*simTable
	before := progress{len(s.v.L0), 0, 0}
	for _, in := range job.Inputs {
		for _, t := range in.Tables {
			e.Removed = append(e.Removed, manifest.Removed{Level: in.Level, Num: t.Num})
			tables = append(tables, s.tables[t.Num])
			before.add(s.tables[t.Num])
			if job.Move {
				e.Added = append(e.Added, manifest.Added{Level: job.OutLevel, Table: t})
			}
		}
	}
	if job.Move {
		s.moves++
		s.apply(e)
		return
	}
	out, left := s.merge(tables, job.Bottommost, job.TargetFileBytes)
	written := int64(0)
	for i, t := range out {
		written += t.size()
		if job.Bottommost {
			left[i].Snapshot = s.oldest()
		}
		s.in.Leftovers[s.num+uint64(i)+1] = left[i]
	}
	s.rewritten += written
	s.deletes.Note(job, written, s.flushed)
	s.add(e, job.OutLevel, job.OutRun, out)
	after := progress{len(s.v.L0), 0, 0}
	for _, t := range out {
		after.add(t)
	}
	s.checkProgress(job, before, after)
}

// progress is what has to get less where nothing moves down.
type progress struct{ runs, tables, items int }

func (p *progress) add(t *simTable) {
	p.tables++
	p.items += len(t.rows) + len(t.ranges)
}

func (s *sim) checkProgress(job *Job, before, after progress) {
	s.t.Helper()
	switch source := job.Inputs[0].Level; {
	case job.OutLevel > source:
	case job.OutLevel == 0 && after.runs < before.runs:
	case job.OutLevel == source && source > 0 && after.tables < before.tables:
	case job.OutLevel == manifest.Bottom && after.items < before.items:
	default:
		s.t.Fatalf("job %s from level %d to %d changed nothing: %+v, then %+v", job.Reason, source, job.OutLevel, before, after)
	}
}

// checkJob checks invariants C1 to C3 against the version.
func (s *sim) checkJob(job *Job) {
	s.t.Helper()
	taken := map[uint64]bool{}
	for _, in := range job.Inputs {
		for _, t := range in.Tables {
			if taken[t.Num] {
				s.t.Fatalf("table %d is in the job twice", t.Num)
			}
			taken[t.Num] = true
		}
	}
	source := job.Inputs[0].Level
	for level, t := range s.v.Tables() {
		if taken[t.Num] || !hullMeets(job, t) {
			continue
		}
		switch {
		case level == job.OutLevel && level > 0:
			s.t.Fatalf("table %d of out level %d is not in the job (C2)", t.Num, level)
		case level == 0 && source == 0 && job.OutLevel > 0 && anyMeets(job.Inputs[0].Tables, t):
			s.t.Fatalf("table %d of level 0 is left behind (C1)", t.Num)
		case level > source && level < job.OutLevel:
			s.t.Fatalf("table %d of level %d is jumped over (C1)", t.Num, level)
		case level > job.OutLevel && job.Bottommost:
			s.t.Fatalf("table %d of level %d lies under a bottommost job (C3)", t.Num, level)
		}
	}
}

func (b bounds) meets(o bounds) bool { return !b.before(o.low) && !o.before(b.low) }

func hullMeets(job *Job, t *base.TableMeta) bool { return job.hull.meets(boundsOf(t)) }

func anyMeets(tables []*base.TableMeta, t *base.TableMeta) bool {
	return slices.ContainsFunc(tables, func(u *base.TableMeta) bool { return boundsOf(u).meets(boundsOf(t)) })
}

// see returns the sequence of the row a reader at `at` finds under key, 0 if none.
func see(rows []simRow, ranges []simRange, key, at uint64) uint64 {
	var best simRow
	cover := uint64(0)
	for _, r := range rows {
		if r.key == key && r.seq <= at && r.seq > best.seq {
			best = r
		}
	}
	for _, d := range ranges {
		if d.low <= key && key < d.high && d.seq <= at {
			cover = max(cover, d.seq)
		}
	}
	if best.kind == base.KindDelete || cover > best.seq {
		return 0
	}
	return best.seq
}

// verify compares what readers see with the truth, for every key in keys.
func (s *sim) verify(keys []uint64) {
	s.t.Helper()
	for _, at := range append([]uint64{s.seq}, s.snapshots...) {
		for _, k := range keys {
			want := see(s.byKey[k], s.truth.ranges, k, at)
			if got := s.read(k, at); got != want {
				s.t.Fatalf("key %d at %d: found sequence %d, want %d, in\n%s", k, at, got, want, s.v)
			}
		}
	}
}

func (s *sim) read(key, at uint64) uint64 {
	rows, ranges := slices.Clone(s.mem.rows), slices.Clone(s.mem.ranges)
	b := simKey(key)
	for _, m := range s.v.Tables() {
		if m.Contains(b) {
			t := s.tables[m.Num]
			i, _ := slices.BinarySearchFunc(t.rows, key, func(r simRow, k uint64) int { return cmp.Compare(r.key, k) })
			for ; i < len(t.rows) && t.rows[i].key == key; i++ {
				rows = append(rows, t.rows[i])
			}
			ranges = append(ranges, t.ranges...)
		}
	}
	return see(rows, ranges, key, at)
}

func (s *sim) allKeys() []uint64 {
	var keys []uint64
	for k := range s.byKey {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// live returns the bytes of the rows the newest reader sees.
func (s *sim) live() (n int64) {
	for k, rows := range s.byKey {
		if seq := see(rows, s.truth.ranges, k, s.seq); seq > 0 {
			i := slices.IndexFunc(rows, func(r simRow) bool { return r.seq == seq })
			n += rows[i].size
		}
	}
	return n
}

func (s *sim) total() (n int64) {
	for level := range manifest.NumLevels {
		n += s.v.Bytes(level)
	}
	return n
}

// finish lets the store go idle and judges the result.
func (s *sim) finish(maxSpace float64) {
	s.t.Helper()
	s.flush()
	s.settle(true)
	s.verify(s.allKeys())
	live := s.live()
	space := float64(s.total()) / float64(max(live, 1))
	if s.flushed > s.total()/2 {
		write := float64(s.flushed+s.rewritten) / float64(s.flushed)
		s.t.Logf("live %d KB, space amplification %.3f, write amplification %.2f, %d jobs (%d moves) %v, %d tables",
			live>>10, space, write, s.jobs, s.moves, s.reasons, s.v.NumTables())
	}
	if len(s.snapshots) == 0 && space > maxSpace && s.total() > 4096 {
		s.t.Errorf("space amplification %.3f, want at most %.2f, of\n%s", space, maxSpace, s.v)
	}
	if n := s.v.NumRuns(); n > DefaultMaxRuns {
		s.t.Errorf("%d runs at rest", n)
	}
}
