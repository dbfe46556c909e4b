package compact

import (
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

func TestWalked(t *testing.T) {
	const row = walkedBytes
	var w Walked
	if w.Note(leastWalked-1) || w.Any() || w.PayFor(0, 1e9) {
		t.Error("too few rows are worth something")
	}
	if !w.Note(1) || !w.Any() || !w.PayFor(leastWalked*row, 1e9) || w.PayFor((leastWalked+1)*row, 1e9) {
		t.Error("so many rows pay for as many times the bytes of one, no less and no more")
	}
	if w.Note(1) || !w.Note(leastWalked) {
		t.Error("it is looked once for each so many rows")
	}
	w.Spend(leastWalked * row)
	if w.PayFor((leastWalked+2)*row, 1e9) || !w.PayFor((leastWalked+1)*row, 1e9) {
		t.Error("what was spent is gone, and no more")
	}
	w.Note(100 * leastWalked)
	if held := int64(2 * leastWalked * row); !w.PayFor(2*held, held) || w.PayFor(2*held+row, 1e9) {
		t.Error("they are worth two merges of everything at most, and stay so")
	}
}

func TestHelpsScans(t *testing.T) {
	deletes := tab(1, 0, 10, 1000)
	deletes.Deletes = 1
	for _, c := range []struct {
		what   string
		runs   [][]*base.TableMeta
		levels map[int][]*base.TableMeta
		want   bool
	}{
		{"a run by itself", [][]*base.TableMeta{{tab(1, 0, 10, 1000), tab(2, 20, 30, 1000)}}, nil, false},
		{"a level by itself", nil, map[int][]*base.TableMeta{5: {tab(1, 0, 10, 1000)}}, false},
		{"tombstones", [][]*base.TableMeta{{deletes}}, nil, true},
		{"runs that overlap", [][]*base.TableMeta{{tab(1, 0, 10, 1000)}, {tab(2, 5, 20, 1000)}}, nil, true},
		{"runs beside each other", [][]*base.TableMeta{{tab(1, 0, 10, 1000)}, {tab(2, 20, 30, 1000)}}, nil, true},
		{"a run over the bottom", [][]*base.TableMeta{{tab(1, 5, 10, 1000)}}, map[int][]*base.TableMeta{6: {tab(2, 0, 20, 1000)}}, true},
		{"a run beside the bottom", [][]*base.TableMeta{{tab(1, 30, 40, 1000)}}, map[int][]*base.TableMeta{6: {tab(2, 0, 20, 1000)}}, true},
	} {
		v := build(t, c.runs, c.levels)
		if job := mustPick(t, v, quiet(true)); job.HelpsScans(v) != c.want {
			t.Errorf("%s: %v, want %v: %+v", c.what, !c.want, c.want, job)
		}
	}
	rest := tab(3, 40, 50, 1000)
	v := build(t, [][]*base.TableMeta{{tab(1, 0, 10, 1000), rest}}, nil)
	job := Job{Inputs: []Input{{0, v.L0[0].Tables[:1]}}, OutLevel: manifest.Bottom}
	if job.HelpsScans(v) {
		t.Error("part of a run to an empty level: there is one run more")
	}
	v = build(t, nil, map[int][]*base.TableMeta{6: {deletes}})
	job = Job{Inputs: []Input{{manifest.Bottom, v.Levels[manifest.Bottom]}}, OutLevel: manifest.Bottom}
	if job.HelpsScans(v) {
		t.Error("what is rewritten within the bottom is")
	}
}
