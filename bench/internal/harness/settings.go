package harness

import (
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Settings lists what a driver sets in both modes, and within the bounds of memory and for
// the several writers that tables have, and says for which where they differ.
func Settings(d engine.Driver, tables []Table) []result.Setting {
	on, off := d.Settings(engine.Options{Sync: true}), d.Settings(engine.Options{})
	var all []result.Setting
	for _, s := range on {
		when := workload.SyncLabel(true)
		if slices.Contains(off, s) {
			when = ""
		}
		all = append(all, result.Setting{When: when, Option: s.Option, Reason: s.Reason})
	}
	for _, s := range off {
		if !slices.Contains(on, s) {
			all = append(all, result.Setting{When: workload.SyncLabel(false), Option: s.Option, Reason: s.Reason})
		}
	}
	for _, t := range tables {
		if t.Params.Memory > 0 {
			bounded := d.Settings(engine.Options{Sync: t.Params.Sync, Memory: t.Params.Memory})
			all = withBound(all, t.Params, bounded)
		}
		if t.Params.Writers > 1 {
			several := d.Settings(engine.Options{Sync: t.Params.Sync, Writers: t.Params.Writers})
			one := d.Settings(engine.Options{Sync: t.Params.Sync})
			all = withTable(all, t.Params, slices.DeleteFunc(several, func(s engine.Setting) bool { return slices.Contains(one, s) }))
		}
	}
	return all
}

// unbounded says that a setting is not made within a bound of memory.
const unbounded = "no bound of memory"

// withBound adds what is set in a table with a bound, and says of what is not that it is
// for the others.
func withBound(all []result.Setting, p workload.Params, bounded []engine.Setting) []result.Setting {
	for i, s := range all {
		inMode := s.When == "" || s.When == workload.SyncLabel(p.Sync)
		if inMode && !slices.Contains(bounded, engine.Setting{Option: s.Option, Reason: s.Reason}) {
			all[i].When = strings.TrimPrefix(s.When+", "+unbounded, ", ")
		}
	}
	return withTable(all, p, bounded)
}

// withTable adds what is set in a table.
func withTable(all []result.Setting, p workload.Params, set []engine.Setting) []result.Setting {
	for _, s := range set {
		same := func(have result.Setting) bool { return have.Option == s.Option && have.Reason == s.Reason }
		switch i := slices.IndexFunc(all, same); {
		case i < 0:
			all = append(all, result.Setting{When: p.ID(), Option: s.Option, Reason: s.Reason})
		case all[i].When != "" && all[i].When != workload.SyncLabel(p.Sync):
			all[i].When += ", " + p.ID()
		}
	}
	return all
}
