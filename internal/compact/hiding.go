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
//
// How much deletes hide is a guess: of keys that are not there they hide nothing, and a merge into a level above the bottom
// frees only what one behind it will. An Account keeps what such merges have written in vain while the store was written to,
// and there are no more of them while that is much. So it is in pauses with merges of tables with deletes, which nobody waits for,
// if they write more than the sizes of levels would have them: flushes pay for those. Where nobody has written for long it is
// neither asked nor told: what is hidden would be owed for ever, each delete goes down once, and what comes next under load is
// not to wait for that.

// freedShare: what a merge for the sake of deletes frees is at least one part in this many of what it rewrites.
const freedShare = 2

// Bounds of what merges for the sake of deletes write in vain: vainShare bytes for each that is flushed, beyond one part in
// vainStore of the store, and BaseBytes.
const (
	vainShare = 4
	vainStore = 8
)

// Account keeps what merges for the sake of deletes have written in vain, that is beyond freedShare times what they freed. The
// zero Account is ready; it is used by one at a time.
type Account struct {
	vain    int64 // when flushed bytes had been flushed
	flushed int64
}

// InVain returns how many bytes too many were written, of a store that has flushed so many since it was opened: it pays for them.
func (a *Account) InVain(flushed int64) int64 { return max(a.vain-vainShare*(flushed-a.flushed), 0) }

// Note adds a job that was picked for the sake of deletes, and has written so many bytes.
func (a *Account) Note(job *Job, written, flushed int64) {
	if freed := job.Bytes() - written; job.Hiding && !job.Move {
		a.vain, a.flushed = max(a.InVain(flushed)+written-freedShare*freed, 0), flushed
	}
}

// hiding reports whether a table hides anything.
func hiding(t *base.TableMeta) bool { return t.RangeDeletes > 0 || t.Deletes > 0 }

// pushHiding picks tables above the bottom that hide so much that merging them down is worth it at once.
func (p *picker) pushHiding() (job Job, ok bool) {
	if p.tooMuchInVain() {
		return Job{}, false
	}
	if slices.ContainsFunc(p.v.L0, func(r manifest.Run) bool { return slices.ContainsFunc(r.Tables, hiding) }) {
		job, ok = p.intoBase(func(c cluster) bool { return p.frees(0, c.tables) })
	}
	for level := 1; level < manifest.Bottom && !ok; level++ {
		job, ok = p.cheapest(level, func(t *base.TableMeta) bool { return p.frees(level, []*base.TableMeta{t}) })
	}
	job.Hiding = ok && !p.in.Thorough
	return forDeletes(job), ok
}

// tooMuchInVain reports whether merges for the sake of deletes have to wait.
func (p *picker) tooMuchInVain() bool {
	return !p.in.Thorough && p.in.InVain > max(p.in.BaseBytes, p.total()/vainStore)
}

// notInVain returns a pick of the same jobs, of which those that write more for what they move than the sizes of levels would
// are noted, if there are deletes in it, and wait while much was written in vain.
func (p *picker) notInVain(pick func() (Job, bool)) func() (Job, bool) {
	return func() (Job, bool) {
		job, ok := pick()
		if !ok || job.Move || p.in.Thorough {
			return job, ok
		}
		source := job.Inputs[0].Tables
		job.Hiding = slices.ContainsFunc(source, hiding) && job.Bytes() > int64(1+p.in.Multiplier)*totalBytes(source)
		if job.Hiding && p.tooMuchInVain() {
			return Job{}, false
		}
		return job, true
	}
}

// forDeletes says that a job was picked because of deletes.
func forDeletes(job Job) Job {
	job.Reason = ReasonDeletes
	if job.Inputs != nil && slices.ContainsFunc(job.Inputs[0].Tables, func(t *base.TableMeta) bool { return t.RangeDeletes > 0 }) {
		job.Reason = ReasonRangeDeletes
	}
	return job
}

// frees reports whether what tables of a level hide in deeper ones is worth merging them all the way down: tables that range
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
	hull := hullOf(source)
	freed, rewritten := int64(0), totalBytes(source)
	rows, bytes := uint64(0), int64(0) // of the bottom
	for deeper := p.next[level]; deeper < manifest.NumLevels; deeper++ {
		from, to := under(p.v.Levels[deeper], hull)
		for _, t := range p.v.Levels[deeper][from:to] {
			if slices.ContainsFunc(ranges, func(r *base.TableMeta) bool { return p.in.Tombstones[r.Num].Hides(t, p.in.Readers) }) {
				freed += t.Size
				continue
			}
			rewritten += t.Size
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
