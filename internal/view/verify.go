package view

import (
	"context"

	"github.com/cairndb/cairn/internal/tree"
)

// Verify reads and checks every byte of every table there is now: see tree.State.Verify.
func (v *View) Verify(ctx context.Context, progress func(done, total int64)) (tree.Report, error) {
	if err := v.Hold(); err != nil {
		return tree.Report{}, err
	}
	defer v.Release()
	if v.catchUpTables != nil {
		if err := v.catchUpTables(); err != nil {
			return tree.Report{}, err
		}
	}
	r := v.Reader()
	defer v.Done(r)
	rs := v.Acquire(r.Slot)
	defer rs.Unref()
	return rs.Verify(ctx, progress)
}
