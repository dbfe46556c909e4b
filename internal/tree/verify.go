package tree

import (
	"context"
	"errors"
	"slices"
)

// Report is what Verify found.
type Report struct {
	Tables   int    // tables read in full
	Bytes    int64  // bytes of tables read
	Entries  uint64 // rows seen, superseded ones and deletes included
	Problems []error
}

// Verify reads every byte of every table and checks every checksum, the order of
// keys, and that tables are what the manifest says. Then it reads the keys of those that are whole once
// more, as far as that is necessary, to see whether newer tables stand above older ones (E1). progress, if not nil, is told
// the bytes done and the total, of the first pass. Damage is in the report, and joined in the error. The
// caller holds a reference.
func (rs *State) Verify(ctx context.Context, progress func(done, total int64)) (Report, error) {
	var rep Report
	if err := ctx.Err(); err != nil {
		return rep, err
	}
	total := SizeOf(rs.Handles)
	done := int64(0)
	damaged := map[*Handle]bool{}
	for _, h := range rs.Handles {
		seen, _ := h.Verify(ctx, func(n int64) {
			if progress != nil {
				progress(done+n, total)
			}
		})
		done += h.Meta.Size
		rep.Bytes += seen.Bytes
		rep.Entries += seen.Entries
		rep.Problems = append(rep.Problems, seen.Problems...)
		damaged[h] = len(seen.Problems) > 0
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		if seen.Whole {
			rep.Tables++
		}
	}
	problems := rs.CheckOrder()
	if len(problems) == 0 { // else a run cannot be walked in the order of keys
		var err error
		if problems, err = checkFalls(ctx, rs.runsWithout(damaged)); err != nil {
			return rep, err
		}
	}
	rep.Problems = append(rep.Problems, problems...)
	return rep, errors.Join(rep.Problems...)
}

// allRuns returns the runs of layers and of the version, newest first.
func (rs *State) allRuns() (runs []Run) {
	for _, l := range rs.Layers {
		runs = append(runs, l.Ingest...)
	}
	return append(runs, rs.Runs...)
}

// runsWithout returns all runs, newest first, without some tables.
func (rs *State) runsWithout(gone map[*Handle]bool) (runs []Run) {
	for _, r := range rs.allRuns() {
		tables := slices.DeleteFunc(slices.Clone(r.Tables), func(h *Handle) bool { return gone[h] })
		if len(tables) > 0 {
			runs = append(runs, NewRun(tables))
		}
	}
	return runs
}
