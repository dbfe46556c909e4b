package tree

import (
	"bytes"
	"context"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/table"
)

// falls walks the keys of runs side by side and compares the sequences of each key (E1). Only runs are walked of which the
// sequences of all rows do not tell, and of these only the blocks in whose range of keys another has one, too, or
// range tombstones: in most stores next to nothing.
type falls struct {
	runs     []Run       // newest first, in the order in which reads look at them
	covers   []*Covers   // of those that have range tombstones
	heads    []*fallHead // by key, newer ones first
	told     map[uint64]bool
	problems []error

	last []byte    // the key looked at last
	seq  uint64    // its least sequence so far
	in   *fallHead // where that was; nil: there was none
}

// fallHead is where the walk stands in a run.
type fallHead struct {
	*RunIter
	at   int   // in runs
	asks []int // runs of which a range tombstone may be out of order with a row of this one
}

// mayRise reports whether the sequences of a run and of an older one leave open that those of a key rise.
func mayRise(newer, older *Run) bool { return newer.MinSeq <= older.MaxSeq }

// checkFalls checks that the sequences of each key fall from run to run, newest first; so do those of range tombstones that
// cover it, of which it looks at the newest of each run. All tables are whole. There is a problem for each table at most. The
// error is ctx's.
func checkFalls(ctx context.Context, runs []Run) (problems []error, err error) {
	w := &falls{runs: runs, covers: make([]*Covers, len(runs)), told: map[uint64]bool{}}
	for i := range runs {
		if runs[i].Tombstones {
			w.covers[i] = runs[i].Covers()
		}
	}
	for i := range runs {
		if h := w.head(i); h != nil {
			defer h.Close()
			h.Init(&runs[i], nil, table.IterOptions{NoCache: true})
			w.stand(h, h.First())
		}
	}
	for n := 0; len(w.heads) > 0; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return w.problems, ctx.Err()
		}
		h := w.heads[0]
		if len(w.heads) == 1 && len(h.asks) == 0 && w.passed(h) {
			break
		}
		w.look(h)
		w.move(h)
	}
	return w.problems, nil
}

// passed reports whether the walk is beyond the key that was looked at last.
func (w *falls) passed(h *fallHead) bool { return w.in == nil || !bytes.Equal(w.last, h.Key()) }

// head returns one of run i, nil if sequences tell that all is well there.
func (w *falls) head(i int) *fallHead {
	h, walk := &fallHead{at: i}, false
	for j := range w.runs {
		if j != i && mayRise(&w.runs[min(i, j)], &w.runs[max(i, j)]) {
			if walk = true; w.runs[j].Tombstones {
				h.asks = append(h.asks, j)
			}
		}
	}
	if !walk {
		return nil
	}
	h.RunIter = NewRunIter()
	return h
}

// stand puts a head in its place, if it stands on a row.
func (w *falls) stand(h *fallHead, ok bool) {
	if !ok {
		if err := h.Err(); err != nil {
			w.problems = append(w.problems, err)
		}
		return
	}
	i, _ := slices.BinarySearchFunc(w.heads, h, func(a, b *fallHead) int {
		if c := bytes.Compare(a.Key(), b.Key()); c != 0 {
			return c
		}
		return a.at - b.at
	})
	w.heads = slices.Insert(w.heads, i, h)
}

// move moves the first head on, to where another stands if nothing before that matters.
func (w *falls) move(h *fallHead) {
	w.heads = slices.Delete(w.heads, 0, 1)
	ok := h.Next()
	if ok && len(h.asks) == 0 && len(w.heads) > 0 {
		if to := w.heads[0].Key(); bytes.Compare(h.Key(), to) < 0 {
			ok = h.SeekGE(to)
		}
	}
	w.stand(h, ok)
}

// look compares the row on which a head stands with those of newer runs, and with range tombstones.
func (w *falls) look(h *fallHead) {
	key, seq := h.Key(), h.Seq()
	if w.passed(h) {
		w.last, w.seq, w.in = append(w.last[:0], key...), seq, h
	} else {
		if h != w.in && seq >= w.seq {
			w.tell(h.at, w.in.at, seq, w.seq)
		}
		if seq < w.seq {
			w.seq, w.in = seq, h
		}
	}
	for _, j := range h.asks {
		cover := w.covers[j].Cover(key, base.Visibility{Snapshot: base.MaxSeq})
		switch {
		case cover == 0:
		case j < h.at && cover < seq:
			w.tell(h.at, j, seq, cover)
		case j > h.at && cover > seq:
			w.tell(j, h.at, cover, seq)
		}
	}
}

// tell notes that the key looked at last has a sequence in an older run that is no less than one of a newer run.
func (w *falls) tell(older, newer int, seq, above uint64) {
	a, b := w.runs[newer].find(w.last).Meta, w.runs[older].find(w.last)
	if !w.told[b.Meta.Num] {
		w.told[b.Meta.Num] = true
		w.problems = append(w.problems, base.Corruptf(b.Name(), -1,
			"stands below table %d, but has sequence %d of key %.100q, which has %d there", a.Num, seq, w.last, above))
	}
}
