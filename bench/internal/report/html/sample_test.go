package html

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// hostile is a text that does harm wherever it is not escaped.
const hostile = `</script></title></style><img src=x onerror=alert(1)>"'&<svg onload=alert(2)>`

var sampleColumns = []result.Column{
	{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "get", Title: "get rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "delete", Title: "delete", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "close", Title: "close", Group: "totals", Unit: result.Nanos},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: result.PeakRSS, Title: "peak RSS", Group: "space", Unit: result.Bytes, Ranked: true},
}

// sample is a run of two workloads, of one with two numbers of keys, with everything a report can meet: engines that
// are void, crashed, hung, failed and absent, figures that do not exist, a floor,
// hostile names, latency curves and time series.
func sample() *result.Run {
	run := &result.Run{
		Schema: result.Schema, Command: []string{"cairn-bench", "run", hostile}, Started: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		Elapsed: 90 * time.Second, Settled: true, Rounds: 2,
		Machine: result.Machine{OS: "linux", Arch: "amd64", CPU: "Some CPU " + hostile, Cores: 2, MemoryBytes: 8e9, Go: "go1.26", SyncDelay: 240 * time.Microsecond},
		Data:    result.Data{Seed: 1, PoolBytes: 8 << 20, Snappy4K: 1.6, Snappy32K: 1.9},
		Durability: []result.Durability{
			{Engine: "cairn", Sync: true, Kind: "put", Class: result.EveryCommit, Commits: 30, Durable: 30, Syncs: 38, Calls: map[string]int{"fsync": 7, "fdatasync": 79}},
			{Engine: "cairn", Sync: true, Kind: "shared", Class: result.Grouped, Commits: 40, Durable: 40, Syncs: 19, Calls: map[string]int{"fsync": 7, "fdatasync": 79}},
			{Engine: "cairn", Kind: "put", Class: result.SomeCommits, Commits: 30, Durable: 1, Syncs: 7},
			{Engine: "boltdb", Sync: true, Kind: "put", Class: result.NoCommit, Commits: 30},
			{Engine: "pebble", Sync: true, Kind: "put", Class: result.NotCounted, Why: "no tracer " + hostile},
		},
	}
	for _, name := range []string{"cairn", "boltdb", "pebble", "liar", "crasher", "hanger", "failing", "absent", "evil" + hostile, "gomap"} {
		run.Engines = append(run.Engines, result.Engine{Name: name, Title: "engine " + name, Module: "example.org/" + name, Version: "v1.2.3", Floor: name == "gomap",
			Cannot: map[string]string{"order": "has no order"}, Settings: []result.Setting{{When: "sync=on", Option: "Sync = true", Reason: hostile}}})
	}
	run.Engines[7].Absent = "built without a C compiler"
	for i, id := range []string{"w1/sound/n=10000/v=4096/sync=on", "w1/" + hostile + "/n=5/v=5/sync=off", "w1/" + hostile + "/n=500/v=5/sync=off"} {
		w := result.Workload{ID: id, Name: "w1", Variant: "sound", Title: "W1 lifecycle: put, get, " + hostile, N: []int{10_000, 5, 500}[i], ValueBytes: 4096, DataBytes: 41e6,
			Snappy: 1.6, Sync: len(run.Workloads) == 0, Conditions: []string{"one goroutine", hostile}, Columns: sampleColumns}
		run.Workloads = append(run.Workloads, w)
		for round := 1; round <= run.Rounds; round++ {
			for i, e := range run.Engines {
				run.Cells = append(run.Cells, sampleCell(w, e, i, round))
			}
		}
	}
	return run
}

func sampleCell(w result.Workload, e result.Engine, i, round int) result.Cell {
	c := result.Cell{Workload: w.ID, Engine: e.Name, Round: round, Status: result.OK, Reason: "", NA: map[string]string{}}
	if status, bad := map[string]result.Status{"liar": result.Void, "crasher": result.Crashed, "hanger": result.Hung, "failing": result.Failed, "absent": result.Absent}[e.Name]; bad {
		c.Status, c.Reason = status, "message of "+e.Name+": "+hostile
		return c
	}
	x := float64(1+i)*float64(1+i) + float64(round)/10
	c.Metrics = map[string]float64{"put": 1000 * x, "get": 5000 / x, "delete": 700 + x, "close": 100 * x, "disk": 1e6 * x, result.PeakRSS: 5e7 + x}
	if e.Floor {
		delete(c.Metrics, "disk")
		delete(c.Metrics, "close")
		c.NA["disk"], c.NA["close"] = "keeps nothing on disk", "keeps nothing on disk"
	}
	if e.Name == "pebble" {
		delete(c.Metrics, "delete")
		c.NA["delete"], c.Notes = "cannot delete "+hostile, []string{"puts one by one"}
	}
	c.Latency = map[string]float64{}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 100} {
		c.Latency[fmt.Sprintf("get p%g", p)] = 900 * x * math.Exp(p/18)
	}
	for s := range 30 {
		sec := result.Second{Ops: int(20000/x) * (20 - s%7) / 20, MaxNano: 1e6 * x * float64(1+s%5)}
		if e.Name == "boltdb" && s == 12 {
			sec = result.Second{}
		}
		c.Series = append(c.Series, sec)
	}
	return c
}

// render writes a run and fails the test if that fails.
func render(t testing.TB, run *result.Run) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, run); err != nil {
		t.Fatal(fmt.Errorf("writing the page: %w", err))
	}
	return out.String()
}
