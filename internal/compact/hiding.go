package compact

import (
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// What deletes hide is garbage that no size of a level shows: a range delete of some bytes can hide all there is. Merging
// it down is urgent where that frees about as much as it writes, so that under load, too, what is hidden takes no more
// space than what is not, and each byte that is freed pays for its part of the merge. A merge does not even read tables
// that range deletes hide as a whole (tombstone.List.Hides).

// freedShare: what a merge for the sake of deletes frees is at least one part in this many of what it rewrites.
const freedShare = 2

// hiding reports whether a table is likely to hide more than it replaces.
func hiding(t *base.TableMeta) bool { return t.RangeDeletes > 0 || 2*t.Deletes > t.Entries }

// pushHiding picks tables above the bottom that hide so much that merging them down is worth it at once.
func (p *picker) pushHiding() (job Job, ok bool) {
	if slices.ContainsFunc(p.v.L0, func(r manifest.Run) bool { return slices.ContainsFunc(r.Tables, hiding) }) {
		job, ok = p.intoBase(func(c cluster) bool { return p.frees(0, c.tables) })
	}
	for level := 1; level < manifest.Bottom && !ok; level++ {
		job, ok = p.cheapest(level, func(t *base.TableMeta) bool { return p.frees(level, []*base.TableMeta{t}) })
	}
	return forDeletes(job), ok
}

// forDeletes says that a job was picked because of deletes.
func forDeletes(job Job) Job {
	job.Reason = ReasonDeletes
	if job.Inputs != nil && slices.ContainsFunc(job.Inputs[0].Tables, func(t *base.TableMeta) bool { return t.RangeDeletes > 0 }) {
		job.Reason = ReasonRangeDeletes
	}
	return job
}

// frees reports whether what tables of a level hide in deeper ones is worth a merge into the next: tables that range
// deletes hide as a whole, from everybody, and of the bottom one row for each delete that can be dropped there.
func (p *picker) frees(level int, source []*base.TableMeta) bool {
	if !slices.ContainsFunc(source, hiding) {
		return false
	}
	var ranges []*base.TableMeta
	deletes := uint64(0)
	for _, t := range source {
		if t.RangeDeletes > 0 {
			ranges = append(ranges, t)
		}
		if p.droppable(t) {
			deletes += t.Deletes
		}
	}
	hull, out := hullOf(source), p.next[level]
	freed, rewritten := int64(0), totalBytes(source)
	rows, bytes := uint64(0), int64(0) // of the bottom
	for deeper := out; deeper < manifest.NumLevels; deeper++ {
		from, to := under(p.v.Levels[deeper], hull)
		for _, t := range p.v.Levels[deeper][from:to] {
			if slices.ContainsFunc(ranges, func(r *base.TableMeta) bool { return p.in.Tombstones[r.Num].Hides(t, p.in.Readers) }) {
				freed += t.Size
				continue
			}
			if deeper == out {
				rewritten += t.Size
			}
			if deeper == manifest.Bottom {
				rows, bytes = rows+t.Entries, bytes+t.Size
			}
		}
	}
	if rows > 0 {
		freed += int64(float64(bytes) / float64(rows) * float64(min(deletes, rows)))
	}
	return freed > 0 && freed*freedShare >= rewritten
}
