package txn

import (
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// The private runs of a transaction, and the tables in them, are kept few: each
// table is an open file, and the record of the commit names them all. Runs whose
// keys overlap are merged, and so are small tables that lie side by side in one
// run, in both cases a few of about the same size at a time: so a row is rewritten
// a number of times logarithmic in the transaction's size.

// spillFan is the least number of runs, or of tables of one run, that are merged.
const spillFan = 4

// smallTable is the size below which tables are merged into larger ones. It is half
// of what they are made to have, since the last table of a merge gets the rest.
const smallTable = merger.TargetTable / 2

// addSpill puts s behind the other private runs. A run that lies beside the one
// before, as those of writes in the order of keys do, is joined to it.
func (tx *Tx) addSpill(s *spill) error {
	if n := len(tx.spills); n > 0 {
		if joined := tx.spills[n-1].join(s); joined != nil {
			tx.spills[n-1].unref()
			s.unref()
			s, tx.spills = joined, tx.spills[:n-1]
		}
	}
	tx.spills = append(tx.spills, s)
	if err := tx.mergeTables(); err != nil {
		return err
	}
	for n := len(tx.spills); n >= spillFan; n = len(tx.spills) {
		if tree.SizeOf(tx.spills[n-spillFan].Tables) > 2*tree.SizeOf(tx.spills[n-1].Tables) {
			break
		}
		if err := tx.mergeSpills(n - spillFan); err != nil {
			return err
		}
	}
	return fits(tx.private())
}

// mostDescribed is how many bytes the description of a transaction's tables may take, which is one frame of the log.
// Tests change it.
var mostDescribed = frame.MaxShortBytes

// fits returns an error if private runs cannot be committed, because there are too many tables with too long keys. The write that
// goes beyond is told, so that not all of the work is done in vain.
func fits(private []*tree.Run) error {
	if n := tree.IngestBytes(private); n > mostDescribed {
		return fmt.Errorf("%w: the transaction's keys are too long for its size: the bounds of its tables take %d bytes, and one commit has room for %d", base.ErrLimit, n, mostDescribed)
	}
	return nil
}

// join returns a run of the tables of both, nil if their keys overlap. No
// tombstone of the one reaches the other, so the older may have the sequence of
// the newer.
func (s *spill) join(newer *spill) *spill {
	a, b := s.Tables, newer.Tables
	switch {
	case len(a) == 0 || len(b) == 0:
		return nil
	case b[len(b)-1].Meta.EndsBefore(a[0].Meta.Smallest):
		a, b = b, a
	case !a[len(a)-1].Meta.EndsBefore(b[0].Meta.Smallest):
		return nil
	}
	tables := slices.Concat(a, b)
	for _, h := range tables {
		h.Ref()
	}
	return newSpill(s.e, tables, newer.seq)
}

// replace returns the run with other tables for its i-th to j-th. It takes over the
// references to these.
func (s *spill) replace(i, j int, by []*tree.Handle) *spill {
	before, behind := s.Tables[:i], s.Tables[j:]
	for _, h := range slices.Concat(before, behind) {
		h.Ref()
	}
	return newSpill(s.e, slices.Concat(before, by, behind), s.seq)
}

// mergeTables merges small tables of the newest run while it has too many. What a
// tombstone of the run hides is not in the run any more, and none reaches another
// table than its own, so nothing but the borders of the tables changes.
func (tx *Tx) mergeTables() error {
	at := len(tx.spills) - 1
	for {
		s := tx.spills[at]
		i, j := crowd(s.Tables)
		if i == j {
			return nil
		}
		part := tree.NewRun(s.Tables[i:j])
		merged, err := tx.mergeRuns(s.seq, &part)
		if err != nil {
			return err
		}
		tx.spills[at] = s.replace(i, j, merged.Tables)
		s.unref()
	}
}

// crowd returns the bounds of the smallest tables in a run that should be merged,
// equal ones if there are none: spillFan or more side by side, all small, that make
// a table at least spillFan-1 times as large as the largest of them. This finds
// them at whichever end the run grows, and leaves a few small ones beside a larger
// one until they weigh as much.
func crowd(tables []*tree.Handle) (from, to int) {
	least := int64(smallTable)
	for i := range tables {
		largest, sum := int64(0), int64(0)
		for j := i; j < len(tables); j++ {
			size := heft(tables[j])
			largest, sum = max(largest, size), sum+size
			if largest >= least {
				break
			}
			if j-i+1 >= spillFan && sum >= (spillFan-1)*largest {
				from, to, least = i, j+1, largest
				break
			}
		}
	}
	return from, to
}

// heft is what a table is measured by when tables are merged. A table whose rows
// compress well, or that ended early because of its long keys, is not small.
func heft(h *tree.Handle) int64 { return max(h.Meta.Size, h.Meta.RawBytes) }

// mergeSpills makes one private run of all from the i-th on.
func (tx *Tx) mergeSpills(i int) error {
	old := tx.spills[i:]
	runs := make([]*tree.Run, len(old))
	for k, s := range old {
		runs[k] = &s.Run
	}
	merged, err := tx.mergeRuns(old[len(old)-1].seq, runs...)
	if err != nil {
		return err
	}
	for _, s := range old {
		s.unref()
	}
	tx.spills = append(tx.spills[:i:i], merged)
	return nil
}

// mergeRuns writes what is in runs, oldest first, as one with the given sequence.
func (tx *Tx) mergeRuns(seq uint64, runs ...*tree.Run) (*spill, error) {
	var rows []base.Iterator
	var tombs []*tombstone.List
	count := 0
	for _, r := range runs {
		it := tree.NewRunIter()
		it.Init(r, tx.slot, table.IterOptions{NoCache: true})
		rows = append(rows, it)
		for _, h := range r.Tables {
			tombs = append(tombs, h.Tombstones())
			count += int(h.Meta.Entries)
		}
	}
	m := iterator.NewMerging(rows...)
	defer m.Close()
	merged, err := tx.writeSpill(m, tombstone.Merge(tombs...), seq, count, &tx.e.Tables().Private.Merged)
	if err != nil {
		return nil, fmt.Errorf("spill of a large transaction: %w", reserve.SpaceError(err))
	}
	return merged, nil
}
