package compact

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// A store that is scanned does not wait for quiet to be merged. A row put together from
// several sources takes some 300 ns longer than one of a single table, and a byte that is
// merged 4 to 8 ns: once scans have walked so many rows that a merge costs no more than
// they have, it pays from then on (as skis are bought once the rent has come to their
// price: Karlin et al., Algorithmica 3, 1988).

const (
	// walkedBytes is how many bytes of a merge a row pays for that scans have walked.
	walkedBytes = 40
	// leastWalked rows are walked before anything pays.
	leastWalked = 1 << 14
)

// Walked counts rows that scans have put together from several sources, and says which
// merges they pay for. Any goroutine may call Note, one at a time the others. The zero
// value has none.
type Walked struct{ rows atomic.Int64 }

// Note counts n rows and reports whether to look what they pay for: now and then.
func (w *Walked) Note(n int) bool {
	now := w.rows.Add(int64(n))
	return now/leastWalked != (now-int64(n))/leastWalked
}

// Any reports whether they may pay for something.
func (w *Walked) Any() bool { return w.rows.Load() >= leastWalked }

// PayFor reports whether the rows pay for a merge of so many bytes, of the bytes held in
// all: they are never worth more than two merges of everything.
func (w *Walked) PayFor(bytes, held int64) bool {
	rows := w.rows.Load()
	if most := max(2*held/walkedBytes, leastWalked); rows > most {
		w.rows.Add(most - rows)
		rows = most
	}
	return rows >= max(bytes/walkedBytes, leastWalked)
}

// Spend takes away what a merge of so many bytes costs.
func (w *Walked) Spend(bytes int64) { w.rows.Add(-bytes / walkedBytes) }

// HelpsScans reports whether scans have less to do once the job, of a version, is done, so that it is worth what they
// have walked: its tables overlap or hold tombstones, or there are fewer runs then. Nothing that stays within the
// bottom is.
func (j *Job) HelpsScans(v *manifest.Version) bool {
	if j.Inputs[0].Level == manifest.Bottom {
		return false
	}
	var all []*base.TableMeta
	taken := map[*base.TableMeta]bool{}
	for _, in := range j.Inputs {
		for _, t := range in.Tables {
			if t.Deletes > 0 || t.RangeDeletes > 0 {
				return true
			}
			all, taken[t] = append(all, t), true
		}
	}
	slices.SortFunc(all, func(a, b *base.TableMeta) int { return bytes.Compare(a.Smallest, b.Smallest) })
	for i, t := range all[1:] {
		if !boundsOf(all[i]).before(t.Smallest) {
			return true
		}
	}
	stays := func(run []*base.TableMeta) bool {
		return slices.ContainsFunc(run, func(t *base.TableMeta) bool { return !taken[t] })
	}
	runs := 0 // how many fewer
	for i := range v.L0 {
		if !stays(v.L0[i].Tables) {
			runs++
		}
	}
	for _, level := range v.Levels[1:] {
		if len(level) > 0 && !stays(level) {
			runs++
		}
	}
	if !stays(v.Levels[j.OutLevel]) {
		runs-- // what is written is a run of its own
	}
	return runs > 0
}
