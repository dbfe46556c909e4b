package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

func TestVariantsAreChosenByName(t *testing.T) {
	for name, want := range map[string]string{"w1": "sound published", "w1/published": "published", "w1/sound": "sound", "load": "sound",
		"w1/published,w1,w1/sound": "published sound"} { // what was named twice was run twice, and counted so
		got, err := Choose(strings.Split(name, ","), false)
		var variants []string
		for _, w := range got {
			variants = append(variants, w.Variant)
		}
		if err != nil || strings.Join(variants, " ") != want {
			t.Errorf("%s: %v, %v, want %s", name, variants, err, want)
		}
	}
	if _, err := Choose([]string{"w1/loud"}, false); err == nil {
		t.Error("an unknown variant is found")
	}
	var names []string
	for _, w := range All() {
		names = append(names, w.Name+"/"+w.Variant)
		if of, err := Of(Params{Workload: w.Name, Variant: w.Variant}); err != nil || of.Title != w.Title {
			t.Errorf("%s/%s: %v", w.Name, w.Variant, err)
		}
	}
	if !strings.HasPrefix(strings.Join(names, " "), "w0/sound w0/published w1/sound w1/published w2/sound w2/published w4/sound w4/published ycsb/sound load/sound large/sound") {
		t.Errorf("order of the tables: %v", names)
	}
}

// An engine is told how many goroutines put at once where that is all they do: among reads
// one that waits for another's put would wait for nothing.
func TestOnlyDurableTellsOfSeveralWriters(t *testing.T) {
	for name, want := range map[string]string{"durable": "[1 4 32]", "ycsb": "[0 0]", "w1/sound": "[0]"} {
		w, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var told []int
		for _, p := range w.Cells(Scale{Counts: []int{10}, Sync: []bool{true}}) {
			told = append(told, p.options().Writers)
		}
		if got := fmt.Sprint(told); got != want {
			t.Errorf("%s: %s writers, want %s", name, got, want)
		}
	}
}

// W1 as published does not ask RocksDB for durable deletes, so it does not judge them.
func TestUnsyncedDeletesAreNotJudged(t *testing.T) {
	for _, c := range []struct{ variant, engine, want string }{
		{"published", "rocksdb", "[put batch]"}, {"published", "pebble", "[put delete batch]"}, {"sound", "rocksdb", "[put delete]"},
	} {
		w, err := Find("w1/" + c.variant)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(w.KindsFor(engine.Info{Name: c.engine})); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.variant, c.engine, got, c.want)
		}
	}
}

func TestEveryCellHasItsOwnID(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		for _, p := range w.Cells(Scale{Full: true}) {
			if seen[p.ID()] {
				t.Errorf("%s twice", p.ID())
			}
			seen[p.ID()] = true
		}
		quick := map[string]bool{}
		for _, p := range w.Cells(Scale{Sync: []bool{true, false}}) {
			if quick[p.ID()] {
				t.Errorf("%s twice in the quick suite", p.ID())
			}
			quick[p.ID()] = true
		}
	}
}

func TestScalesShapeTheCells(t *testing.T) {
	ids := func(name string, s Scale) string {
		w, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, p := range w.Cells(s) {
			ids = append(ids, p.ID())
		}
		return strings.Join(ids, " ")
	}
	for _, c := range []struct {
		name  string
		scale Scale
		want  string
	}{
		{"load", Scale{}, "load/sound/n=100000/v=100/sync=off"},
		{"load", Scale{Counts: []int{5}, Theta: 0.5, KeyBytes: 8, Sync: []bool{true}}, "load/sound/n=5/v=100/sync=on/k=8/zipf=0.5"},
		{"ycsb", Scale{}, "ycsb/sound/n=10000/v=1000/sync=off/g=1 ycsb/sound/n=10000/v=1000/sync=off/g=2"},
		{"large", Scale{Sync: []bool{false}}, "large/sound/n=512/v=16384/sync=off large/sound/n=8/v=1048576/sync=off"},
		{"large", Scale{Sync: []bool{false}, Full: true}, "large/sound/n=512/v=16384/sync=off large/sound/n=8/v=1048576/sync=off " +
			"large/sound/n=8192/v=16384/sync=off large/sound/n=512/v=1048576/sync=off"},
		{"large", Scale{Data: &data.File{}, ValueBytes: 9}, ""},
		{"w1/published", Scale{ValueBytes: 9}, ""},
		{"w1", Scale{Data: &data.File{}, ValueBytes: 9, OwnKeys: 50, Sync: []bool{true}, Full: true}, "w1/sound/n=50/v=9/sync=on/data"},
		{"w1", Scale{Data: &data.File{}, ValueBytes: 9, OwnKeys: 5000}, "w1/sound/n=2000/v=9/sync=on/data w1/sound/n=5000/v=9/sync=off/data"},
		{"w1", Scale{}, "w1/sound/n=2000/v=4096/sync=on w1/sound/n=10000/v=4096/sync=off"},
		{"w1", Scale{Sync: []bool{true}}, "w1/sound/n=2000/v=4096/sync=on"},
		{"w1", Scale{Sync: []bool{false}}, "w1/sound/n=10000/v=4096/sync=off"},
		{"w1", Scale{Counts: []int{500}}, "w1/sound/n=500/v=4096/sync=on w1/sound/n=500/v=4096/sync=off"},
		{"load", Scale{Counts: []int{5, 50}}, "load/sound/n=5/v=100/sync=off load/sound/n=50/v=100/sync=off"},
		{"w1", Scale{Counts: []int{5000}, Sync: []bool{true}}, "w1/sound/n=5000/v=4096/sync=on"},
		{"w1", Scale{Full: true}, "w1/sound/n=10000/v=4096/sync=on w1/sound/n=10000/v=4096/sync=off w1/sound/n=100000/v=4096/sync=on w1/sound/n=100000/v=4096/sync=off"},
		{"durable", Scale{}, "durable/sound/n=3000/v=100/sync=on/g=1 durable/sound/n=3000/v=100/sync=on/g=4 durable/sound/n=3000/v=100/sync=on/g=32"},
	} {
		if got := ids(c.name, c.scale); got != c.want {
			t.Errorf("%s %+v:\n%s, want\n%s", c.name, c.scale, got, c.want)
		}
	}
}

// The user's own records and keys go through every workload that takes them, on an
// ordered engine, one without order and one without batches.
func TestOwnRecordsThroughTheWorkloads(t *testing.T) {
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "{\"name\":\"user-%d\",\"text\":%q}\n", (i*37)%60, strings.Repeat("x", i*3))
	}
	path := filepath.Join(t.TempDir(), "own.jsonl")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "name"} {
		s := Scale{Seed: 1, Sync: []bool{false}, Counts: []int{40}, ValueBytes: 100, Seconds: 0.5, Data: &data.File{Path: path, Key: key}}
		if key != "" {
			s.OwnKeys = 60
		}
		for _, w := range All() {
			for _, p := range w.Cells(s) {
				for _, name := range []string{"goleveldb", "pogreb", "gomap"} {
					d, err := engine.Find(name)
					if err != nil {
						t.Fatal(err)
					}
					if err := w.Run(NewRecorder(""), d, t.TempDir(), p); err != nil {
						t.Errorf("%s key %q %s: %v", p.ID(), key, name, err)
					}
				}
			}
		}
	}
}

// TestArticlesBoundTheLargestCount: of the full suite's published variants, where nothing
// else was asked for; each engine that is left out says why, and takes no time.
func TestArticlesBoundTheLargestCount(t *testing.T) {
	w, err := Find("w1/published")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale Scale
		n     int
		only  bool
	}{{Scale{Full: true}, 100_000, true}, {Scale{Full: true}, 10_000, false}, {Scale{Full: true, Counts: []int{100_000}}, 100_000, false}, {Scale{Counts: []int{100_000}}, 100_000, false}} {
		found := false
		for _, p := range w.Cells(c.scale) {
			if p.N != c.n {
				continue
			}
			found = true
			for name, in := range map[string]bool{"cairn": true, "boltdb": true, "badger": true, "lmdb": false, "bbolt": false} {
				d, err := engine.Find(name)
				if err != nil {
					t.Fatal(err)
				}
				if does := !w.leavesOut(p, name); does != (in || !c.only) {
					t.Errorf("%+v, %d keys: %s does it: %v", c.scale, p.N, name, does)
				} else if brief := w.TimeOf(p, d.Info, 0) == idle; brief == does {
					t.Errorf("%+v, %d keys: %s takes %s", c.scale, p.N, name, w.TimeOf(p, d.Info, 0))
				}
			}
		}
		if !found {
			t.Errorf("%+v: no cell of %d keys", c.scale, c.n)
		}
	}
	for _, w := range All() {
		if w.Article != nil && w.Variant != "published" {
			t.Errorf("%s/%s: no article is followed", w.Name, w.Variant)
		}
	}
	rec := NewRecorder(t.TempDir())
	d, err := engine.Find("lmdb")
	if err != nil {
		t.Fatal(err)
	}
	if err := Do(w, rec, d, t.TempDir(), Params{N: 100_000, ArticleOnly: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(w.Columns, Common...) {
		if !strings.Contains(rec.NA[c.Key], "article") {
			t.Errorf("%s: %q", c.Key, rec.NA[c.Key])
		}
	}
}

// Counts beyond the keys that records bring are all the same count.
func TestCountsOfOwnKeysComeOnce(t *testing.T) {
	w, err := Find("load")
	if err != nil {
		t.Fatal(err)
	}
	cells := w.Cells(Scale{Counts: []int{100, 2, 50}, OwnKeys: 3, Sync: []bool{false}})
	if len(cells) != 2 || cells[0].N != 3 || cells[1].N != 2 {
		t.Errorf("%+v", cells)
	}
}
