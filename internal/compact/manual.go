package compact

import (
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// Manual returns the next job of a compaction somebody has asked for: one that
// brings tables that overlap [low, high) (nil: no bound) closer to the bottom, or
// rids those at the bottom of tombstones, or compresses them well. After enough of them
// there is none left.
func Manual(v *manifest.Version, low, high []byte, in Inputs) (Job, bool) {
	p := newPicker(v, in)
	want := func(t *base.TableMeta) bool { return t.Overlaps(low, high) }
	job, ok := p.intoBase(func(c cluster) bool { return slices.ContainsFunc(c.tables, want) })
	for level := 1; level < manifest.Bottom && !ok; level++ {
		job, ok = p.cheapest(level, want)
	}
	if !ok {
		job, ok = p.cleanRange(low, high)
	}
	job.Reason = ReasonManual
	return job, ok
}

// cleanRange picks a bottom table that overlaps the range and has tombstones that
// no merge has tried to drop yet, or was compressed with little effort.
func (p *picker) cleanRange(low, high []byte) (Job, bool) {
	for _, t := range p.v.Levels[manifest.Bottom] {
		left, known := p.in.Leftovers[t.Num]
		clean := !p.droppable(t) || known && left.Snapshot >= t.MaxSeq
		if !t.Overlaps(low, high) || clean && !left.Quick {
			continue
		}
		job := p.job(manifest.Bottom, []*base.TableMeta{t}, manifest.Bottom)
		return job, p.fits(&job)
	}
	return Job{}, false
}
