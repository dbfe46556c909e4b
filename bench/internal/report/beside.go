package report

import (
	"math"
	"strings"

	"github.com/cairndb/cairn/bench/internal/report/published"
	"github.com/cairndb/cairn/bench/internal/result"
)

// Counterparts returns the tables that repeat a published set: of each variant and
// sync mode the one whose parameters are nearest. A set of one sync mode has
// counterparts of that mode only.
func Counterparts(tables []Table, a published.Article, s published.Set) []Table {
	var chosen []Table
	at := map[string]int{}
	for _, t := range tables {
		mode := syncMode(t.Workload)
		if t.Workload.Name != a.Workload || s.Sync != "" && s.Sync != mode {
			continue
		}
		key := t.Workload.Variant + " " + mode
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(chosen)
			chosen = append(chosen, t)
		case distance(t.Workload, s) < distance(chosen[i].Workload, s):
			chosen[i] = t
		}
	}
	return chosen
}

func syncMode(w result.Workload) string {
	if w.Sync {
		return "sync=on"
	}
	return "sync=off"
}

// distance is how far the parameters are from those published.
func distance(w result.Workload, s published.Set) float64 {
	return apart(w.N, s.N) + apart(w.ValueBytes, s.ValueBytes)
}

func apart(have, want int) float64 {
	if have <= 0 || want <= 0 {
		return 0
	}
	return math.Abs(math.Log(float64(have) / float64(want)))
}

// Counterpart is the measured figure beside a published one, in the published unit.
func (t Table) Counterpart(f published.Figure) (Figure, bool) {
	row, ok := t.like(f.Engine)
	if !ok {
		return Figure{None: "not run"}, false
	}
	if row.Status != result.OK {
		return Figure{None: string(row.Status) + ": " + row.Reason}, false
	}
	for _, key := range f.Columns {
		have, ok := row.Figures[key]
		if !ok {
			continue
		}
		if !have.Known() {
			return have, false
		}
		factor, ok := factor(t.Workload, key, f.Unit)
		if !ok {
			continue
		}
		have.Median, have.Low, have.High = have.Median*factor, have.Low*factor, have.High*factor
		return have, true
	}
	return Figure{None: "no such column"}, false
}

// renamed is what the laboratory calls engines of the articles otherwise.
var renamed = map[string]string{"tokyocabinet": "tokyo-hash"}

// like finds an engine, or the first of its kinds: tokyocabinet-hash is a tokyocabinet.
func (t Table) like(engine string) (Row, bool) {
	if row, ok := t.Find(engine); ok {
		return row, true
	}
	if row, ok := t.Find(renamed[engine]); ok {
		return row, true
	}
	for _, row := range t.Rows {
		if strings.HasPrefix(row.Engine.Name, engine+"-") {
			return row, true
		}
	}
	return Row{}, false
}

// perPass reports whether a column counts a pass over the whole set, where the
// figure beside it is of one pair.
func perPass(c result.Column, want result.Unit) bool {
	return strings.HasSuffix(c.Title, "/pass") || c.Unit == result.Nanos && want == result.NanosPerOp
}

// factor converts a column's unit.
func factor(w result.Workload, key string, want result.Unit) (float64, bool) {
	for _, c := range w.Columns {
		switch {
		case c.Key != key:
		case perPass(c, want) && w.N > 0:
			return 1 / float64(w.N), true
		case c.Unit == want:
			return 1, true
		}
	}
	return 0, false
}
