package published

import (
	"math"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

func find(t *testing.T, article, set, engine, title string) Figure {
	t.Helper()
	all, err := Articles()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		for _, s := range a.Sets {
			for _, f := range s.Figures {
				if a.Name == article && s.Title == set && f.Engine == engine && f.Title == title {
					return f
				}
			}
		}
	}
	t.Fatalf("%s, %s: no %s of %s", article, set, title, engine)
	return Figure{}
}

func TestFiguresArePerOperation(t *testing.T) {
	for _, c := range []struct {
		article, set, engine, title string
		unit                        result.Unit
		want                        float64
	}{
		{"W0", "10 groups of 50,000 pairs", "lmdb", "write", result.NanosPerOp, 2561.10128},
		{"W0 processes", "one writer beside three readers", "boltdb", "read, slowest of three", result.NanosPerOp, 21518.9268},
		{"W0", "10 groups of 50,000 pairs", "lmdb", "disk per group", result.Bytes, 3.6*(1<<20) + 8*(1<<10)},
		{"W1", "10,000 keys, sync on", "boltdb", "iterate", result.NanosPerOp, 91.7552},
		{"W1", "100,000 keys, sync on", "badger", "total", result.Nanos, 66.51e9},
		{"W1", "100,000 keys, sync on", "rocksdb", "disk", result.Bytes, 380 * (1 << 20)},
		{"W2", "put of 128 B", "nutsdb", "put", result.NanosPerOp, 51998},
		{"W2", "get", "nutsdb-keys", "get", result.NanosPerOp, 27255},
		{"W4", "100,000 pairs", "pogreb", "get allocs/op", result.AllocsPerOp, 1},
		{"W4", "10,000 pairs", "goleveldb", "disk", result.Bytes, 8.1 * (1 << 20)},
	} {
		f := find(t, c.article, c.set, c.engine, c.title)
		if f.Unit != c.unit || math.Abs(f.Value/c.want-1) > 1e-9 {
			t.Errorf("%s %s %s %s: %v %s, want %v %s", c.article, c.set, c.engine, c.title, f.Value, f.Unit, c.want, c.unit)
		}
	}
}

func TestNoFigureIsZero(t *testing.T) {
	all, err := Articles()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range all {
		for _, s := range a.Sets {
			for _, f := range s.Figures {
				n++
				if f.Value <= 0 && f.Failed == "" {
					t.Errorf("%s, %s: %s of %s is %v", a.Name, s.Title, f.Title, f.Engine, f.Value)
				}
			}
		}
	}
	if n < 150 {
		t.Errorf("%d figures; the data have more", n)
	}
}

// A reason that names an engine, a figure or a set which the article has not would
// never be shown.
func TestEveryReasonConcernsAFigure(t *testing.T) {
	all, err := Articles()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, a := range all {
		for _, r := range a.Reasons {
			if !concerns(a, r) {
				t.Errorf("%s: concerns no figure: %s", a.Name, r.Text)
			}
			if r.Basis == "" || r.Text == "" || r.Proof == "" {
				t.Errorf("%s: %+v", a.Name, r)
			}
			shown++
		}
	}
	have := 0
	for _, list := range reasons {
		have += len(list)
	}
	if shown != have {
		t.Errorf("%d reasons of %d are of an article", shown, have)
	}
}

// A reason that rests on source names a file.
func TestReasonsNameTheirSources(t *testing.T) {
	for article, list := range reasons {
		for _, r := range list {
			if (r.Basis == Source || r.Basis == Program) && !strings.Contains(r.Proof, ".go ") && !strings.Contains(r.Proof, ".c ") && !strings.Contains(r.Proof, ".md ") {
				t.Errorf("%s: no file in what this rests on: %s: %s", article, r.Text, r.Proof)
			}
			if !strings.HasPrefix(r.RestsOn(), string(r.Basis)+": ") {
				t.Errorf("%s: %q", article, r.RestsOn())
			}
		}
	}
}

func concerns(a Article, r Reason) bool {
	for _, s := range a.Sets {
		for _, f := range s.Figures {
			if r.Applies(s, f) {
				return true
			}
		}
	}
	return false
}
