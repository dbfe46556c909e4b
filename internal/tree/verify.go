package tree

import (
	"context"
	"errors"
)

// Report is what Verify found.
type Report struct {
	Tables   int    // tables read in full
	Bytes    int64  // bytes of tables read
	Entries  uint64 // rows seen, superseded ones and deletes included
	Problems []error
}

// Verify reads every byte of every table and checks every checksum, the order of
// keys, and that tables are what the manifest says. progress, if not nil, is told
// the bytes done and the total. Damage is in the report, and joined in the error. The
// caller holds a reference.
func (rs *State) Verify(ctx context.Context, progress func(done, total int64)) (Report, error) {
	var rep Report
	if err := ctx.Err(); err != nil {
		return rep, err
	}
	total := SizeOf(rs.Handles)
	done := int64(0)
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
		if ctx.Err() != nil {
			return rep, ctx.Err()
		}
		if seen.Whole {
			rep.Tables++
		}
	}
	rep.Problems = append(rep.Problems, rs.CheckOrder()...)
	return rep, errors.Join(rep.Problems...)
}
