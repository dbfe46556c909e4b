package harness

import (
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// settingsOf describes a run of workloads on an engine and returns what it says is set.
func settingsOf(t *testing.T, name string, suites ...string) []result.Setting {
	t.Helper()
	d, err := engine.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []workload.Workload
	for _, suite := range suites {
		w, err := workload.Find(suite)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	plan := NewPlan([]engine.Driver{d}, all, workload.Scale{Sync: []bool{true, false}, Seed: 1})
	return describe(plan, Config{Seed: 1}).Engines[0].Settings
}

// What an engine is set to within a bound of memory is told with the tables it is for, and
// what is so in the others only with that.
func TestSettingsWithinABoundAreTold(t *testing.T) {
	const memory, lean = "memory/sound/n=262144/v=1024/sync=off", "lean/sound/n=10000000/v=8/sync=off/k=8"
	for _, c := range []struct {
		engine string
		suites []string
		option string // begins with it
		when   []string
	}{
		{"cairn", []string{"w1"}, "Options.Memory not set", []string{""}},
		{"cairn", []string{"w1", "memory"}, "Options.Memory not set", []string{"no bound of memory"}},
		{"cairn", []string{"w1", "memory"}, "Options.Memory = 68157440", []string{memory}},
		{"cairn", []string{"memory", "lean"}, "Options.Memory = ", []string{memory, lean}},
		{"cairn", []string{"memory"}, "Options.Durability = Relaxed", []string{"sync=off"}},
		{"goleveldb", []string{"lean"}, "Options.BlockCacheCapacity = 16777216", []string{lean}},
		{"badger", []string{"w1"}, "Options.MemTableSize = ", nil},
		{"badger", []string{"memory"}, "Options.MemTableSize = ", []string{memory}},
		{"badger", []string{"memory"}, "Options.Logger = nil", []string{""}},
		{"bbolt", []string{"memory"}, "DB.NoSync = true", []string{"sync=off"}},
		{"bbolt", []string{"w1", "ycsb"}, "DB.Batch", nil},
		{"bbolt", []string{"durable", "memory"}, "DB.Batch for puts, MaxBatchSize = 4", []string{"durable/sound/n=3000/v=100/sync=on/g=4"}},
		{"boltdb", []string{"w1", "durable"}, "DB.Batch for puts, MaxBatchSize = 32", []string{"durable/sound/n=3000/v=100/sync=on/g=32"}},
		{"cairn", []string{"memory", "durable"}, "Options.Memory not set", []string{"no bound of memory"}},
	} {
		var when []string
		for _, s := range settingsOf(t, c.engine, c.suites...) {
			if strings.HasPrefix(s.Option, c.option) {
				when = append(when, s.When)
			}
		}
		if !slices.Equal(when, c.when) {
			t.Errorf("%s in %v: %q is told for %q, want %q", c.engine, c.suites, c.option, when, c.when)
		}
	}
}
