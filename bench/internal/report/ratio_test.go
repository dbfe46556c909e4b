package report

import (
	"math"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
)

func TestToBest(t *testing.T) {
	table := Tabulate(sample())[0]
	columns := map[string]result.Column{}
	for _, c := range table.Workload.Columns {
		columns[c.Key] = c
	}
	for _, c := range []struct {
		engine, column string
		want           float64
		ok             bool
	}{
		{"rival", "put", 1, true},
		{"cairn", "put", 301.0 / 201, true},
		{"gomap", "put", 2.0 / 201, true}, // a floor is below the best store
		{"gomap", "disk", 0, false},
		{"liar", "put", 0, false},
		{"cairn", "close", 0, false}, // not ranked
	} {
		row, _ := table.Find(c.engine)
		if got, ok := table.ToBest(row, columns[c.column]); ok != c.ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s %s: %v %v, want %v %v", c.engine, c.column, got, ok, c.want, c.ok)
		}
	}
}

func TestOverallIsTheGeometricMean(t *testing.T) {
	table := Tabulate(sample())[0]
	cairn, _ := table.Find("cairn")
	mean, of, all := table.Overall(cairn, table.Workload.Columns)
	if want := math.Cbrt(301.0 / 201 * 1 * 5000 / 4999); math.Abs(mean-want) > 1e-9 || of != 3 || all != 3 {
		t.Errorf("%v of %d of %d, want %v", mean, of, all, want)
	}
	floor, _ := table.Find("gomap")
	if _, of, all := table.Overall(floor, table.Workload.Columns); of != 2 || all != 3 {
		t.Errorf("the floor has %d of %d", of, all)
	}
	liar, _ := table.Find("liar")
	if mean, of, _ := table.Overall(liar, table.Workload.Columns); mean != 0 || of != 0 {
		t.Errorf("a void engine has a mean of %v over %d", mean, of)
	}
}

func TestRulesComeFromTheGuide(t *testing.T) {
	rules := Rules()
	if len(rules) < 9 {
		t.Fatalf("%d rules: %q", len(rules), rules)
	}
	for i, r := range rules {
		if len(r) < 40 || r[len(r)-1] == '\n' {
			t.Errorf("rule %d: %q", i+1, r)
		}
	}
}
