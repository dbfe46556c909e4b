package compact

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// tab describes a table of 100 rows over keys [low, high] in the manner of a test.
func tab(num, low, high uint64, size int64) *base.TableMeta {
	return &base.TableMeta{
		Num: num, Size: size, Smallest: simKey(low), Largest: simKey(high),
		MinSeq: 1, MaxSeq: num, Entries: 100,
	}
}

// build makes a version: runs of level 0, oldest first, then levels.
func build(t *testing.T, runs [][]*base.TableMeta, levels map[int][]*base.TableMeta) *manifest.Version {
	t.Helper()
	e := new(manifest.Edit)
	for i, run := range runs {
		for _, m := range run {
			e.Added = append(e.Added, manifest.Added{Run: uint64(i + 1), Table: m})
		}
	}
	for level, tables := range levels {
		for _, m := range tables {
			e.Added = append(e.Added, manifest.Added{Level: level, Table: m})
		}
	}
	v, err := new(manifest.Version).Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// quiet is inputs under which everything is flushed and nobody reads the past.
func quiet(idle bool) Inputs {
	return Inputs{Idle: idle, Readers: tombstone.Stripes{1e6}, TargetFileBytes: 1000, BaseBytes: 10000}
}

func nums(in Input) (n []uint64) {
	for _, t := range in.Tables {
		n = append(n, t.Num)
	}
	return n
}

func mustPick(t *testing.T, v *manifest.Version, in Inputs) Job {
	t.Helper()
	job, ok := Pick(v, in)
	if !ok {
		t.Fatalf("no job for\n%s", v)
	}
	return job
}

func mustRest(t *testing.T, v *manifest.Version, in Inputs) {
	t.Helper()
	if job, ok := Pick(v, in); ok {
		t.Fatalf("job %+v for\n%s", job, v)
	}
	if debt := Debt(v, in); debt != 0 {
		t.Fatalf("debt %d without a job", debt)
	}
}

func TestEmptyVersionHasNoDebt(t *testing.T) {
	mustRest(t, new(manifest.Version), quiet(true))
	mustRest(t, new(manifest.Version), Inputs{Idle: true})
}

func TestLevelTargetsGrowFromTheBottom(t *testing.T) {
	for _, c := range []struct {
		bottom int64
		base   int
		target [manifest.NumLevels]int64
	}{
		{bottom: 0, base: 6},
		{bottom: 99999, base: 6},
		{bottom: 100000, base: 5, target: [7]int64{5: 10000}},
		{bottom: 1500000, base: 4, target: [7]int64{5: 150000, 4: 15000}},
		{bottom: 10000000, base: 3, target: [7]int64{5: 1000000, 4: 100000, 3: 10000}},
		{bottom: 10000000000, base: 3, target: [7]int64{5: 1000000000, 4: 100000000, 3: 10000000}},
	} {
		v := new(manifest.Version)
		if c.bottom > 0 {
			v = build(t, nil, map[int][]*base.TableMeta{6: {tab(1, 1, 2, c.bottom)}})
		}
		p := newPicker(v, quiet(false))
		if p.base != c.base || p.target != c.target {
			t.Errorf("bottom %d: base %d, targets %v; want %d, %v", c.bottom, p.base, p.target, c.base, c.target)
		}
	}
}

func TestRunsOfLevel0GoTogetherIfTheyOverlap(t *testing.T) {
	v := build(t, [][]*base.TableMeta{
		{tab(1, 0, 10, 100), tab(2, 50, 60, 100)},
		{tab(3, 5, 20, 100)},
		{tab(4, 20, 25, 100)},
		{tab(5, 70, 80, 100)},
	}, map[int][]*base.TableMeta{6: {tab(9, 22, 90, 300)}})
	job := mustPick(t, v, quiet(false))
	if got := nums(job.Inputs[0]); len(got) != 5 && len(got) != 3 {
		t.Fatalf("source %v", got)
	}
	for _, want := range []uint64{1, 3, 4} {
		found := false
		for _, n := range nums(job.Inputs[0]) {
			found = found || n == want
		}
		if !found {
			t.Errorf("table %d stays behind", want)
		}
	}
	if job.OutLevel != 6 || len(job.Inputs) != 2 || !job.Bottommost || job.Move || job.OutRun != 0 || job.Reason != ReasonRuns {
		t.Errorf("job %+v", job)
	}
}

func TestMoves(t *testing.T) {
	run := func(change func(*base.TableMeta, *Inputs)) Job {
		m, in := tab(7, 10, 20, 100), quiet(true)
		change(m, &in)
		v := build(t, [][]*base.TableMeta{{m}}, map[int][]*base.TableMeta{6: {tab(1, 0, 9, 100)}})
		job := mustPick(t, v, in)
		if job.OutLevel != 6 || len(job.Inputs) != 1 || !job.Bottommost {
			t.Fatalf("job %+v", job)
		}
		return job
	}
	if job := run(func(*base.TableMeta, *Inputs) {}); !job.Move {
		t.Error("a table with nothing under it is rewritten")
	}
	if job := run(func(_ *base.TableMeta, in *Inputs) { in.Codecs = true }); job.Move {
		t.Error("a table is moved to the bottom with the wrong codec")
	}
	deletes := func(m *base.TableMeta, in *Inputs) { m.Deletes = 50 }
	if job := run(deletes); job.Move {
		t.Error("deletes are moved to the bottom though they could be dropped")
	}
	if job := run(func(m *base.TableMeta, in *Inputs) { m.Deletes, in.Readers = 50, tombstone.Stripes{3, 1e6} }); job.Move {
		t.Error("deletes are moved to the bottom though only those have to stay that hide something")
	}
}

func TestSmallRunsAreJoinedInLevel0(t *testing.T) {
	big := map[int][]*base.TableMeta{6: {tab(1, 0, 100, 9000)}}
	v := build(t, [][]*base.TableMeta{{tab(5, 0, 90, 800)}, {tab(6, 0, 90, 20)}, {tab(7, 0, 90, 10)}, {tab(8, 0, 90, 10)}}, big)
	job := mustPick(t, v, quiet(false))
	if got := nums(job.Inputs[0]); job.OutLevel != 0 || len(got) != 3 || job.OutRun != 4 || job.Bottommost || job.Move {
		t.Fatalf("job %+v", job)
	}
	v = build(t, [][]*base.TableMeta{{tab(5, 0, 90, 800)}, {tab(6, 0, 90, 700)}, {tab(7, 0, 90, 700)}, {tab(8, 0, 90, 700)}}, big)
	if job := mustPick(t, v, quiet(false)); job.OutLevel != 6 {
		t.Fatalf("job %+v", job)
	}
}

// TestRunsOfManyLivesAreJoined: a store that never lives long enough for what is due, and each of whose lives adds a run, has
// few runs for its bytes, whether lives write a little, or much now and then, and what is joined is not joined all the time.
func TestRunsOfManyLivesAreJoined(t *testing.T) {
	const lives, full = 600, 1 << 20
	for name, size := range map[string]func(life int) int64{
		"little": func(int) int64 { return 100 },
		"more":   func(int) int64 { return full / 12 },
		"mixed":  func(life int) int64 { return 100 << (life * 7 % 16) },
	} {
		v, in, added, written, most := new(manifest.Version), quiet(false), int64(0), int64(0), 0
		in.TargetFileBytes = full
		for life := range lives {
			run := manifest.Added{Run: uint64(life + 1), Table: tab(uint64(life+1), 0, 90, size(life))}
			v = applied(t, v, &manifest.Edit{Added: []manifest.Added{run}})
			added += run.Table.Size
			if job, ok := JoinSmall(v, in); ok {
				if job.Bytes() > full || job.Move || job.Bottommost || job.OutLevel != 0 {
					t.Fatalf("%s: job %+v", name, job)
				}
				written += job.Bytes()
				edit := job.Edit()
				joined := tab(uint64(lives+life+1), 0, 90, job.Bytes())
				joined.MaxSeq = job.OutRun
				edit.Added = []manifest.Added{{Run: job.OutRun, Table: joined}}
				v = applied(t, v, edit)
			}
			most = max(most, len(v.L0)-int(2*added/full))
		}
		if logs := bits.Len64(uint64(added)); most > 2*DefaultL0Trigger+logs/2 || written > added*int64(logs) {
			t.Errorf("%s: up to %d runs, and %d of %d tables; %d bytes written to join %d", name, most, len(v.L0), lives, written, added)
		}
	}
}

func applied(t *testing.T, v *manifest.Version, edit *manifest.Edit) *manifest.Version {
	t.Helper()
	next, err := v.Apply(edit)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// TestRoom: where there is not space for the merge that is due, or for that of all, as many runs as there
// is room for become one; what lies by itself goes down by itself.
func TestRoom(t *testing.T) {
	bottom := map[int][]*base.TableMeta{6: {tab(1, 0, 49, 900), tab(2, 50, 99, 900)}}
	v := build(t, [][]*base.TableMeta{{tab(11, 1, 90, 600)}, {tab(12, 1, 90, 100)}, {tab(13, 1, 90, 100)}, {tab(14, 1, 90, 300)}, {tab(15, 1, 90, 300)}}, bottom)
	for room, want := range map[int64][]uint64{0: {15, 14, 13, 12, 11, 1, 2}, 1400: {15, 14, 13, 12, 11}, 1399: {14, 13, 12, 11}, 799: {15, 14, 13}, 400: {14, 13}, 399: {13, 12}} {
		in := quiet(false)
		in.Room = room
		job := mustPick(t, v, in)
		var got []uint64
		for _, input := range job.Inputs {
			got = append(got, nums(input)...)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || job.OutLevel == 0 && job.OutRun != job.Inputs[0].Tables[0].MaxSeq-10 {
			t.Errorf("room for %d: %v to run %d, want %v", room, got, job.OutRun, want)
		}
	}
	in := quiet(true)
	in.Room = 199
	mustRest(t, v, in)
	parts := build(t, [][]*base.TableMeta{{tab(11, 1, 20, 300), tab(12, 60, 90, 100)}}, bottom)
	in.Room = 1000
	if job := mustPick(t, parts, in); !slices.Equal(nums(job.Inputs[0]), []uint64{12}) {
		t.Errorf("room for %d: %v goes down", in.Room, nums(job.Inputs[0]))
	}
}

func TestFewerRunsAreAllowedBesideManyLevels(t *testing.T) {
	levels := map[int][]*base.TableMeta{
		3: {tab(1, 0, 9, 9000)}, 4: {tab(2, 0, 9, 90000)}, 5: {tab(3, 0, 9, 900000)}, 6: {tab(4, 0, 9, 10000000)},
	}
	runs := [][]*base.TableMeta{{tab(5, 0, 90, 80)}, {tab(6, 0, 90, 80)}}
	if _, ok := Pick(build(t, runs, levels), quiet(false)); !ok {
		t.Error("two runs beside four levels are left alone")
	}
	levels = map[int][]*base.TableMeta{6: levels[6][:1]}
	if _, ok := Pick(build(t, runs, levels), quiet(false)); ok {
		t.Error("two runs beside one level are merged")
	}
}

func TestTableOfManyDeletesGoesFirst(t *testing.T) {
	heavy := tab(12, 20, 29, 1000)
	heavy.Deletes = 45
	v := build(t, nil, map[int][]*base.TableMeta{
		5: {tab(11, 0, 9, 9500), heavy, tab(13, 40, 49, 1000)},
		6: {tab(1, 0, 9, 30000), tab(2, 20, 29, 3300), tab(3, 40, 49, 3000), tab(4, 50, 90, 70000)},
	})
	job := mustPick(t, v, quiet(false))
	if got := nums(job.Inputs[0]); job.Reason != ReasonSize || got[0] != 12 {
		t.Fatalf("job %+v takes %v", job, got)
	}
}

func TestTombstonesAtTheBottom(t *testing.T) {
	m := tab(5, 0, 9, 30000)
	m.Deletes = 10
	v := build(t, nil, map[int][]*base.TableMeta{6: {m}})
	in := quiet(true)
	if job := mustPick(t, v, in); job.Reason != ReasonGarbage || job.OutLevel != 6 || !job.Bottommost {
		t.Fatalf("job %+v", job)
	}
	in.Leftovers = map[uint64]Leftover{5: {Snapshot: 4}}
	mustPick(t, v, in)
	in.Leftovers = map[uint64]Leftover{5: {Snapshot: 5}}
	mustRest(t, v, in) // merged already when every reader was past it
	for _, c := range []struct {
		from, to uint64
		readers  tombstone.Stripes
		garbage  bool
	}{
		{1, 999_999, tombstone.Stripes{1e6}, true},
		{1, 1e6, tombstone.Stripes{1e6}, false}, // as the next reader may
		{10, 20, tombstone.Stripes{9, 21, 1e6}, true},
		{10, 20, tombstone.Stripes{9, 20, 1e6}, false},
		{10, 20, tombstone.Stripes{10, 1e6}, false},
		{10, 20, tombstone.Stripes{9}, false},
		{10, 8, tombstone.Stripes{9}, true}, // of a table that lies
	} {
		in.Readers = c.readers
		in.Leftovers = map[uint64]Leftover{5: {Snapshot: 5, Kept: []Kept{{c.from, c.to, 20000}}}}
		if c.garbage {
			mustPick(t, v, in)
		} else {
			mustRest(t, v, in)
		}
		if _, ok := Manual(v, Asked{LastSeq: 1e6}, in); ok != c.garbage {
			t.Errorf("asked for, with %v kept for readers from %d to %d: %v", c.readers, c.from, c.to, ok)
		}
	}
	in.Leftovers = nil
	in.Readers = tombstone.Stripes{4, 1e6}
	mustRest(t, v, in)
	in.Readers = tombstone.Stripes{1e6}
	m.Deletes = 4 // in a store of several levels four of a hundred are not worth it
	mustRest(t, v, in)
	m.RangeDeletes = 1
	mustPick(t, v, in)
}

// A table that was compressed with little effort is written again when there is time, or
// somebody asks, and then counts as debt no more.
func TestQuickTablesAreCompressedWell(t *testing.T) {
	v := build(t, nil, map[int][]*base.TableMeta{6: {tab(5, 0, 9, 30000), tab(6, 10, 19, 30000)}})
	in := quiet(true)
	in.Codecs, in.Thorough = true, true
	mustRest(t, v, in)
	in.Leftovers = map[uint64]Leftover{6: {Quick: true}}
	in.Codecs = false // nothing would be compressed better
	mustRest(t, v, in)
	in.Codecs, in.Thorough = true, false // it has not been quiet for long
	mustRest(t, v, in)
	in.Thorough = true
	job := mustPick(t, v, in)
	if got := nums(job.Inputs[0]); job.Reason != ReasonQuick || job.OutLevel != 6 || len(got) != 1 || got[0] != 6 {
		t.Fatalf("job %+v takes %v", job, got)
	}
	if debt := Debt(v, in); debt != 30000 {
		t.Errorf("debt %d, want the table's size", debt)
	}
	if asked, ok := Manual(v, Asked{LastSeq: 1e6}, in); !ok || nums(asked.Inputs[0])[0] != 6 {
		t.Errorf("asked for: %+v %v", asked, ok)
	}
	in.Idle = false
	mustRest(t, v, in)
	in.Idle = true
	var left Leftovers
	for _, quick := range []bool{true, false} {
		job.Quick = quick
		left.Note(&job, []uint64{6}, make([]Leftover, 1), 0)
		if in.Leftovers = left.All(); in.Leftovers[6].Quick != quick {
			t.Errorf("written by a job that is quick: %v: %+v", quick, in.Leftovers)
		}
	}
	mustRest(t, v, in)
	left.Drop(6)
	if len(left.All()) != 0 {
		t.Error("dropped and still there")
	}
}

func TestRangeDeletesArePushedDownOnlyWhenIdleAndUseful(t *testing.T) {
	m := tab(5, 0, 9, 10)
	m.RangeDeletes = 1
	large := tab(1, 0, 90, 500000)
	large.Entries = 1e5
	v := build(t, [][]*base.TableMeta{{m}}, map[int][]*base.TableMeta{6: {large}})
	if job := mustPick(t, v, quiet(true)); job.Reason != ReasonRangeDeletes || job.OutLevel != 5 {
		t.Fatalf("job %+v", job)
	}
	in := quiet(true)
	in.Readers = tombstone.Stripes{4, 1e6}
	mustRest(t, v, in)
	mustRest(t, v, quiet(false))
}

func TestGrandparentsAreReported(t *testing.T) {
	v := build(t, nil, map[int][]*base.TableMeta{
		4: {tab(20, 0, 30, 20000)},
		5: {tab(11, 0, 9, 9500), tab(12, 20, 29, 9500)},
		6: {tab(1, 0, 9, 300000), tab(2, 20, 29, 300000), tab(4, 50, 90, 700000)},
	})
	job := mustPick(t, v, quiet(false))
	if len(job.Grandparents) != 2 || job.Bottommost || job.GrandparentBytes <= 0 || job.OutLevel != 5 {
		t.Errorf("job %+v", job)
	}
}

func TestDebtGrowsWithWhatIsToDo(t *testing.T) {
	last := int64(0)
	for n := int64(4); n < 12; n++ {
		var runs [][]*base.TableMeta
		for i := range n {
			runs = append(runs, []*base.TableMeta{tab(uint64(i+10), 0, 9, 5000)})
		}
		debt := Debt(build(t, runs, map[int][]*base.TableMeta{6: {tab(1, 0, 9, 30000)}}), quiet(false))
		if debt <= last || debt < 5000*n {
			t.Errorf("%d runs: debt %d after %d", n, debt, last)
		}
		last = debt
	}
}

// TestManualEnds: what was flushed after a compaction was asked for is not part of it, or there would always be more.
func TestManualEnds(t *testing.T) {
	since := tab(7, 0, 10, 100)
	since.MinSeq = 6
	v := build(t, [][]*base.TableMeta{{since}}, map[int][]*base.TableMeta{6: {tab(1, 0, 20, 1000)}})
	if job, ok := Manual(v, Asked{LastSeq: 5, NextNum: 100}, quiet(true)); ok {
		t.Errorf("job %+v", job)
	}
	if _, ok := Manual(v, Asked{LastSeq: 6}, quiet(true)); !ok {
		t.Error("no job for what was there")
	}
	since.MinSeq, since.MaxSeq = 0, 0 // as of rows that everybody sees
	if job, ok := Manual(v, Asked{LastSeq: 5, NextNum: 7}, quiet(true)); ok {
		t.Errorf("job %+v", job)
	}
	if _, ok := Manual(v, Asked{LastSeq: 5, NextNum: 8}, quiet(true)); !ok {
		t.Error("no job for what was there, without sequences")
	}
	if _, ok := Manual(v, Asked{Low: simKey(11), LastSeq: 6, NextNum: 8}, quiet(true)); ok {
		t.Error("job for another range")
	}
}

// TestManualJoinsSmall: whoever asks for a compaction finds nothing left to do, and what is joined is within what they asked for.
func TestManualJoinsSmall(t *testing.T) {
	var bottom []*base.TableMeta
	for i := range uint64(6) {
		bottom = append(bottom, tab(i+1, 10*i, 10*i+9, 100))
	}
	v := build(t, nil, map[int][]*base.TableMeta{6: bottom})
	for _, c := range []struct {
		name  string
		asked Asked
		want  []uint64
	}{
		{"all", Asked{LastSeq: 6}, []uint64{1, 2, 3, 4, 5, 6}},
		{"a range", Asked{Low: simKey(10), High: simKey(50), LastSeq: 6}, []uint64{2, 3, 4, 5}},
		{"three of them", Asked{Low: simKey(10), High: simKey(40), LastSeq: 6}, nil},
	} {
		job, ok := Manual(v, c.asked, quiet(true))
		if ok != (c.want != nil) || ok && (!slices.Equal(nums(job.Inputs[0]), c.want) || job.Reason != ReasonManual) {
			t.Errorf("%s: %v, job %+v", c.name, ok, job)
		}
	}
	for _, m := range bottom[:3] {
		m.MinSeq, m.MaxSeq = 7, 7
	}
	if job, ok := Manual(v, Asked{LastSeq: 6}, quiet(true)); ok {
		t.Errorf("what was written since: job %+v", job)
	}
}

// What cannot be read is left out, and what is beside it is merged.
func TestUnreadableTables(t *testing.T) {
	var runs [][]*base.TableMeta
	for num := range uint64(6) {
		runs = append(runs, []*base.TableMeta{tab(num+10, 0, 9, 500)})
	}
	in := quiet(false)
	in.Unreadable = map[uint64]bool{5: true, 10: true}
	job := mustPick(t, build(t, runs, map[int][]*base.TableMeta{6: {tab(5, 0, 9, 30000)}}), in)
	if got := nums(job.Inputs[0]); len(job.Inputs) != 1 || job.OutLevel != 0 || len(got) != 5 || slices.Contains(got, 10) {
		t.Errorf("level 0 above a table that cannot be read, and with one: %+v takes %v", job, got)
	}

	most, some := tab(5, 0, 9, 30000), tab(6, 10, 19, 30000)
	most.Deletes, some.Deletes = 50, 20
	v := build(t, nil, map[int][]*base.TableMeta{6: {most, some}})
	in = quiet(true)
	in.Unreadable = map[uint64]bool{5: true}
	if job := mustPick(t, v, in); nums(job.Inputs[0])[0] != 6 || Debt(v, in) != 30000 {
		t.Errorf("the table with less garbage, which can be read: %+v, debt %d", job, Debt(v, in))
	}
	in.Unreadable[6] = true
	mustRest(t, v, in)

	in = quiet(true)
	in.Codecs, in.Thorough, in.Leftovers = true, true, map[uint64]Leftover{5: {Quick: true}, 6: {Quick: true}}
	in.Unreadable = map[uint64]bool{5: true}
	v = build(t, nil, map[int][]*base.TableMeta{6: {tab(5, 0, 9, 30000), tab(6, 10, 19, 30000)}})
	if job := mustPick(t, v, in); nums(job.Inputs[0])[0] != 6 || Debt(v, in) != 30000 {
		t.Errorf("the one compressed in haste that can be read: %+v, debt %d", job, Debt(v, in))
	}

	var small []*base.TableMeta
	for num := range uint64(9) {
		small = append(small, tab(num+1, 10*num, 10*num+9, 50))
	}
	in = quiet(true)
	in.Unreadable = map[uint64]bool{5: true}
	if got := nums(mustPick(t, build(t, nil, map[int][]*base.TableMeta{6: small}), in).Inputs[0]); !slices.Equal(got, []uint64{1, 2, 3, 4}) {
		t.Errorf("small tables beside one that cannot be read: %v", got)
	}
}

// TestTablesNotJoinedAboveAreJoinedBelow: above the last level what is joined is cut at the tables below. That four tables
// stayed four there says nothing of the level to which they are moved, under the same numbers.
func TestTablesNotJoinedAboveAreJoinedBelow(t *testing.T) {
	tables := []*base.TableMeta{tab(1, 0, 9, 10), tab(2, 10, 19, 10), tab(3, 20, 29, 10), tab(4, 30, 39, 10)}
	v := build(t, nil, map[int][]*base.TableMeta{manifest.Bottom: tables})
	for level := 5; level <= manifest.Bottom; level++ {
		var l Leftovers
		job := Job{Inputs: []Input{{level, tables}}, OutLevel: level, joins: true}
		l.Note(&job, []uint64{1, 2, 3, 4}, make([]Leftover, 4), 1e6)
		in := quiet(true)
		in.Leftovers = l.All()
		if job, ok := Pick(v, in); ok != (level < manifest.Bottom) {
			t.Errorf("joining did not make fewer in level %d: job %t %+v", level, ok, job)
		}
	}
}

// Merges for the sake of deletes wait while much was written for them in vain, but not when nobody has written for long: what is
// hidden would be owed, and stay, for ever. What that writes is not for flushes to pay.
func TestDeletesInVainWaitWhileThereAreWrites(t *testing.T) {
	heavy := tab(12, 20, 29, 100)
	heavy.Deletes = heavy.Entries
	v := build(t, nil, map[int][]*base.TableMeta{5: {heavy}, 6: {tab(1, 0, 9, 70000), tab(2, 20, 29, 3000), tab(4, 50, 90, 70000)}})
	for _, c := range []struct {
		inVain   int64
		thorough bool
		picked   bool
	}{{0, false, true}, {1 << 40, false, false}, {1 << 40, true, true}} {
		in := quiet(false)
		in.InVain, in.Thorough = c.inVain, c.thorough
		if job, ok := Pick(v, in); ok != c.picked || ok && (job.Reason != ReasonDeletes || job.Hiding == c.thorough) {
			t.Errorf("%+v: %t, %+v", c, ok, job)
		}
		fitting := Fitting{Free: func() (int64, bool) { return 1 << 40, true }}
		if job, ok := fitting.Pick(v, in, true); !ok || job.Reason != ReasonDeletes {
			t.Errorf("%+v, while commits wait for space: %t, %+v", c, ok, job)
		}
	}
}

// TestIdleMergesInVain: what is merged where nobody waits for it is noted, and waits, where deletes have more written than sizes of
// levels would; deletes that a snapshot keeps weigh nothing.
func TestIdleMergesInVain(t *testing.T) {
	const small, large = 60, 14000
	for _, c := range []struct {
		name           string
		size           int64
		rows, deletes  uint64
		inVain         int64
		kept, thorough bool
		picked, noted  bool
	}{
		{"deletes", small, 80, 80, 0, false, false, true, true},
		{"deletes, much in vain", small, 80, 80, 1 << 40, false, false, false, false},
		{"deletes, nobody writes", small, 80, 80, 1 << 40, false, true, true, false},
		{"deletes of what a snapshot keeps", small, 80, 80, 0, true, false, false, false},
		{"puts", small, 5, 0, 1 << 40, false, false, false, false},
		{"many puts", large, 200, 0, 1 << 40, false, false, true, false},
		{"many puts, some deletes", large, 200, 10, 1 << 40, false, false, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := tab(12, 0, 90, c.size)
			source.Entries, source.Deletes, source.MaxSeq = c.rows, c.deletes, 5
			bottom := tab(1, 0, 90, 120000)
			bottom.Entries = 1000
			in := quiet(true)
			in.InVain, in.Thorough = c.inVain, c.thorough
			if c.kept {
				in.Readers = append([]uint64{4}, in.Readers...)
			}
			job, ok := Pick(build(t, nil, map[int][]*base.TableMeta{5: {source}, 6: {bottom, tab(2, 100, 190, 30000)}}), in)
			if ok != c.picked || job.Hiding != c.noted || ok && job.Reason != ReasonSpace {
				t.Errorf("%t, %+v", ok, job)
			}
		})
	}
}
