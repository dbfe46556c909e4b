package segments

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// TestMakeFitting: what is tried, and how often, where there is space for a segment of some size only, and what is removed first.
func TestMakeFitting(t *testing.T) {
	for what, c := range map[string]struct {
		fit   Fit
		size  int   // planned
		space int   // for a segment and its flush
		tried []int // sizes, but the first, which is tried again when what can be removed is
		got   int   // 0: none
	}{
		"enough":                         {Fit{Need: 100}, 1 << 20, 1 << 20, nil, 1 << 20},
		"nothing smaller":                {Fit{Need: 100}, 1 << 20, 1<<20 - 1, nil, 0},
		"halves":                         {Fit{Need: 100, Halves: tree.LeastSegment}, 1 << 20, 300 << 10, []int{512 << 10, 256 << 10}, 256 << 10},
		"down to the least":              {Fit{Need: 100, Halves: tree.LeastSegment}, 1 << 20, 100 << 10, []int{512 << 10, 256 << 10, 128 << 10}, 0},
		"down to the first commit":       {Fit{Need: 300 << 10, Halves: tree.LeastSegment}, 1 << 20, 310 << 10, []int{512 << 10, 300 << 10}, 300 << 10},
		"small":                          {Fit{Need: 100, Small: true}, 1 << 20, 64 << 10, []int{64 << 10}, 64 << 10},
		"small, for the first commit":    {Fit{Need: 70_000, Small: true}, 1 << 20, 80_000, []int{72 << 10}, 72 << 10},
		"small, without for its flush":   {Fit{Need: 100, Small: true}, 1 << 20, 1, []int{64 << 10}, SmallBytes},
		"no commit has it without flush": {Fit{Need: 70_000, Small: true}, 1 << 20, 1, []int{72 << 10}, 0},
	} {
		s := newStore(t)
		var tried []int
		freed := 0
		c.fit.Free = func() { freed = len(tried) }
		c.fit.Make = func(p Plan) (*tree.Memory, error) {
			if tried = append(tried, p.Size); p.Size > c.space {
				return nil, fmt.Errorf("make: %w", vfs.ErrNoSpace)
			}
			return s.Make(p)
		}
		m, err := s.MakeFitting(Plan{Size: c.size, Records: 100}, c.fit)
		want := []int{c.size}
		if c.size > c.space {
			want = append(append(want, c.size), c.tried...)
		}
		if !slices.Equal(tried, want) || freed != min(len(want)-1, 1) {
			t.Errorf("%s: tried %v, removed after %d, want %v", what, tried, freed, want)
		}
		switch {
		case c.got == 0:
			if m != nil || !vfs.IsNoSpace(err) {
				t.Errorf("%s: %v, %v", what, m, err)
			}
		case err != nil || m.Seg.Capacity() != c.got:
			t.Errorf("%s: %v", what, err)
		}
		if m != nil {
			m.Seg.Close()
			m.Unref()
		}
	}
}
