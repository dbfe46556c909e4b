package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/vfs/memfs"
)

// stacked is a table of rows of increasing keys, and of one range delete if it has a sequence.
type stacked struct {
	level     int // 0: a run of its own, the first is the newest
	rows      []stackedRow
	low, high string
	deleted   uint64
}

type stackedRow struct {
	key string
	seq uint64
}

// newStack makes a state of tables, numbered from 1 on.
func newStack(t testing.TB, tables ...stacked) *State {
	fs, budget := memfs.New(), arena.NewBudget(64<<20)
	fs.StopJournal()
	pages := cache.New(budget, epoch.New())
	version, handles := &manifest.Version{}, map[*base.TableMeta]*Handle{}
	for i, s := range tables {
		name := base.FileName(base.FileTable, uint64(i+1))
		f, err := fs.Create(name)
		w := table.NewWriter(f, table.WriterOptions{Name: name, Num: uint64(i + 1), BlockBytes: 128})
		for _, r := range s.rows {
			err = errors.Join(err, w.Add([]byte(r.key), r.seq, base.KindPut, []byte("value")))
		}
		if s.deleted > 0 {
			err = errors.Join(err, w.AddRangeDelete([]byte(s.low), []byte(s.high), s.deleted))
		}
		meta, werr := w.Finish()
		f, oerr := fs.Open(name)
		r, rerr := table.Open(f, meta, base.ID{}, "/db/"+name, pages, budget)
		if err := errors.Join(err, werr, oerr, rerr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		handles[&meta] = &Handle{Meta: &meta, Reader: r}
		if s.level == 0 {
			version.L0 = append(version.L0, manifest.Run{ID: uint64(len(tables) - i), Tables: []*base.TableMeta{&meta}})
		} else {
			version.Levels[s.level] = append(version.Levels[s.level], &meta)
		}
	}
	return NewState(nil, version, func(m *base.TableMeta) *Handle { return handles[m] })
}

// TestVerifySeesTablesOutOfOrder: Verify tells of a key that has a newer version in a table which reads look at later, and of
// range deletes that stand likewise, once of each table; and of nothing else.
func TestVerifySeesTablesOutOfOrder(t *testing.T) {
	row := func(key string, seq uint64) []stackedRow { return []stackedRow{{key, seq}} }
	for name, c := range map[string]struct {
		tables []stacked
		want   string // "": all is well
	}{
		"newer below":            {[]stacked{{level: 3, rows: row("b", 1)}, {level: 5, rows: row("b", 9)}}, "2.sst"},
		"runs of level 0":        {[]stacked{{rows: row("b", 1)}, {rows: row("b", 9)}}, "2.sst"},
		"the same twice":         {[]stacked{{level: 3, rows: row("b", 4)}, {level: 5, rows: row("b", 4)}}, "2.sst"},
		"no sequence above one":  {[]stacked{{level: 3, rows: row("b", 0)}, {level: 6, rows: row("b", 1)}}, "2.sst"},
		"no sequence in either":  {[]stacked{{level: 3, rows: row("b", 0)}, {level: 6, rows: row("b", 0)}}, "2.sst"},
		"a run between":          {[]stacked{{level: 3, rows: row("b", 4)}, {level: 4, rows: row("a", 1)}, {level: 5, rows: row("b", 9)}}, "3.sst"},
		"an old version of many": {[]stacked{{level: 3, rows: []stackedRow{{"b", 9}, {"b", 2}}}, {level: 5, rows: row("b", 4)}}, "2.sst"},
		"two, told of once": {[]stacked{{level: 3, rows: []stackedRow{{"b", 1}, {"c", 1}}},
			{level: 5, rows: []stackedRow{{"b", 9}, {"c", 9}}}}, "2.sst"},
		"a row below an older range delete": {[]stacked{{level: 3, low: "a", high: "c", deleted: 5}, {level: 5, rows: row("b", 9)}}, "2.sst"},
		"a row above a newer range delete":  {[]stacked{{level: 3, rows: row("b", 4)}, {level: 5, low: "a", high: "c", deleted: 5}}, "2.sst"},

		"newer above":               {[]stacked{{level: 3, rows: row("b", 9)}, {level: 5, rows: row("b", 1)}}, ""},
		"other keys":                {[]stacked{{level: 3, rows: row("b", 1)}, {level: 5, rows: row("c", 9)}}, ""},
		"no sequence at the bottom": {[]stacked{{rows: row("b", 0)}, {level: 5, rows: row("a", 1)}, {level: 6, rows: row("a", 0)}}, ""},
		"range deletes beside": {[]stacked{{level: 3, rows: []stackedRow{{"a", 1}, {"c", 1}}}, {level: 5, low: "b", high: "c", deleted: 5},
			{level: 6, rows: []stackedRow{{"a", 0}, {"b", 4}}}}, ""},
	} {
		rs := newStack(t, c.tables...)
		rep, err := rs.Verify(context.Background(), nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (len(rep.Problems) != 1 || !errors.Is(err, base.ErrCorrupt) || !strings.Contains(err.Error(), "in /db/00000"+c.want)):
			t.Errorf("%s: %v, want that of %s", name, err, c.want)
		}
		if rep.Tables != len(c.tables) {
			t.Errorf("%s: %d tables were read", name, rep.Tables)
		}
	}
}

// TestVerifySeesOneKeyOutOfOrder: a key that is out of order is seen wherever it stands, whatever else is in the tables; and
// where nothing is, nothing is seen.
func TestVerifySeesOneKeyOutOfOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		runs, keys, seq := 2+r.IntN(4), 1+r.IntN(300), uint64(0)
		tables := make([]stacked, runs)
		bad := -1
		if round%3 > 0 {
			bad = r.IntN(keys)
		}
		density := make([]int, runs) // of the keys, so many in a hundred
		for i := range tables {
			tables[i].level, density[i] = 1+i, 1+r.IntN(100)
		}
		for k := range keys {
			key := fmt.Sprintf("key %03d", k)
			upper, lower := -1, -1
			for i := runs - 1; i >= 0; i-- { // older ones first: sequences of other keys are of no matter
				if k != bad && r.IntN(100) < density[i] {
					seq++
					tables[i].rows = append(tables[i].rows, stackedRow{key, seq})
				}
			}
			if k == bad {
				upper = r.IntN(runs - 1)
				lower = upper + 1 + r.IntN(runs-1-upper)
				seq += 2
				tables[upper].rows = append(tables[upper].rows, stackedRow{key, seq - 1})
				tables[lower].rows = append(tables[lower].rows, stackedRow{key, seq})
			}
		}
		var full []stacked
		for _, s := range tables {
			if len(s.rows) > 0 {
				full = append(full, s)
			}
		}
		rep, err := newStack(t, full...).Verify(context.Background(), nil)
		if got := len(rep.Problems) > 0; got != (bad >= 0) || got && !strings.Contains(err.Error(), fmt.Sprintf("key %03d", bad)) {
			t.Fatalf("round %d: key %d is out of order of %d in %d runs: %v", round, bad, keys, runs, err)
		}
	}
}

// TestVerifyWithoutSomeTables: tables that are left out, since they are damaged, do not keep others from being compared; and a
// context that has ended ends it, with what was read until then.
func TestVerifyWithoutSomeTables(t *testing.T) {
	rs := newStack(t, stacked{level: 2, rows: []stackedRow{{"a", 1}, {"b", 1}}},
		stacked{level: 3, rows: []stackedRow{{"b", 5}}}, stacked{level: 4, rows: []stackedRow{{"a", 4}}})
	runs := rs.runsWithout(map[*Handle]bool{rs.Handles[1]: true})
	problems, err := checkFalls(context.Background(), runs)
	if len(runs) != 2 || err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "3.sst") {
		t.Fatalf("%d runs, %v, %v", len(runs), problems, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := checkFalls(ctx, runs); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	rep, err := rs.Verify(ctx, func(int64, int64) { cancel() })
	if !errors.Is(err, context.Canceled) || rep.Entries != 2 || rep.Bytes != rs.Handles[0].Meta.Size {
		t.Errorf("ended in the first table: %+v, %v", rep, err)
	}
}
