package compact

import (
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// Asked is what somebody has asked to be compacted: what was committed up to LastSeq, the tables with it that
// overlap [Low, High) (nil: no bound).
type Asked struct {
	Low, High []byte
	LastSeq   uint64
	NextNum   uint64 // of files then: tables whose rows have no sequences any more are told by their numbers
}

// wants reports whether a table may hold something of that.
func (a *Asked) wants(t *base.TableMeta) bool {
	old := t.MinSeq <= a.LastSeq
	if t.MaxSeq == 0 {
		old = t.Num < a.NextNum
	}
	return old && t.Overlaps(a.Low, a.High)
}

// Manual returns the next job of a compaction somebody has asked for: one that
// brings tables closer to the bottom, or rids those at the bottom of tombstones, or compresses them
// well, or joins small ones. After enough of them there is none left, however much is committed meanwhile.
func Manual(v *manifest.Version, a Asked, in Inputs) (Job, bool) {
	p := newPicker(v, in)
	want := a.wants
	job, ok := p.intoBase(func(c cluster) bool { return slices.ContainsFunc(c.tables, want) })
	for level := 1; level < manifest.Bottom && !ok; level++ {
		job, ok = p.cheapest(level, want)
	}
	if !ok {
		job, ok = p.cleanRange(a.Low, a.High)
	}
	if !ok {
		stays := p.staysIn(manifest.Bottom)
		job, ok = p.joinSmall(manifest.Bottom, func(t *base.TableMeta) bool { return !want(t) || stays(t) })
	}
	job.Reason = ReasonManual
	return job, ok
}

// cleanRange picks a bottom table that overlaps the range and has tombstones that
// no merge has tried to drop yet, or versions that nobody can see any more, or was compressed with little effort.
func (p *picker) cleanRange(low, high []byte) (Job, bool) {
	for _, t := range p.v.Levels[manifest.Bottom] {
		left, known := p.in.Leftovers[t.Num]
		clean := !p.droppable(t) || known && left.Snapshot >= t.MaxSeq
		if !t.Overlaps(low, high) || clean && !left.Quick && left.garbage(&p.in) == 0 {
			continue
		}
		job := p.job(manifest.Bottom, []*base.TableMeta{t}, manifest.Bottom)
		return job, p.fits(&job)
	}
	return Job{}, false
}
