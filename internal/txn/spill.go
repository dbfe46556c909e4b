package txn

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

// spillFan is how many private runs of about the same size a transaction merges
// into one: so a row is rewritten a number of times logarithmic in the
// transaction's size.
const spillFan = 4

// spill is a private sorted run of a transaction: tables that no edit names. Rows
// and tombstones are stored with sequence 0; while private, the run has the
// sequence of its newest entry. It is immutable; iterators may outlive its place
// in the transaction. It holds a reference to each of its tables.
type spill struct {
	tree.Run
	e    *engine.Engine
	seq  uint64 // private sequence
	refs atomic.Int32
}

func newSpill(e *engine.Engine, tables []*tree.Handle, seq uint64) *spill {
	s := &spill{Run: tree.NewRun(tables), e: e, seq: seq}
	s.MaxSeq = seq
	s.refs.Store(1)
	return s
}

func (s *spill) ref() { s.refs.Add(1) }

func (s *spill) unref() {
	if s.refs.Add(-1) != 0 {
		return
	}
	for _, h := range s.Tables {
		h.Unref()
	}
}

// closeSpilled closes a table of a private run nobody refers to any more, and
// removes it unless it has become part of the store.
func closeSpilled(e *engine.Engine, h *tree.Handle) {
	e.Retire(func() {
		if h.Kept {
			h.Reader.Close()
		} else {
			e.Tables().Discard([]*tree.Handle{h})
		}
	})
}

// spill moves what the transaction holds in memory to a private run.
func (tx *Tx) spill() error {
	vis := tx.visibility()
	seq := vis.PrivateLimit - 1
	s, err := tx.writeSpill(iterator.NewMerging(tx.writes.Iterators(nil)...), tombstone.Build(tx.writes.RangeDeletes()), seq)
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", engine.SpaceError(err))
	}
	if tx.lent { // iterators and slices handed out keep the old buffer alive
		tx.buf, tx.lent = nil, false
	}
	tx.buf = tx.buf[:0]
	tx.writes = memtable.NewGrowing(seq + 1)
	return tx.addSpill(s)
}

// addSpill puts s behind the other private runs. A run that lies beside the one
// before, as those of writes in the order of keys do, is joined to it as it is.
func (tx *Tx) addSpill(s *spill) error {
	if n := len(tx.spills); n > 0 {
		if joined := tx.spills[n-1].join(s); joined != nil {
			tx.spills[n-1].unref()
			s.unref()
			s, tx.spills = joined, tx.spills[:n-1]
		}
	}
	tx.spills = append(tx.spills, s)
	for n := len(tx.spills); n >= spillFan; n = len(tx.spills) {
		if tree.SizeOf(tx.spills[n-spillFan].Tables) > 2*tree.SizeOf(tx.spills[n-1].Tables) {
			break
		}
		if err := tx.mergeSpills(n - spillFan); err != nil {
			return err
		}
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

// writeSpill writes rows as a private run with the given sequence.
func (tx *Tx) writeSpill(rows base.Iterator, ts *tombstone.List, seq uint64) (*spill, error) {
	e := tx.e
	m := &compact.Merge{Rows: rows, Tombstones: ts, TargetBytes: engine.TargetTable}
	tables, err := e.Tables().Write(m, 0, 0, seq)
	if err != nil {
		return nil, err
	}
	for _, h := range tables {
		h.OnUnused = func(h *tree.Handle) { closeSpilled(e, h) }
		h.Ref()
	}
	return newSpill(e, tables, seq), nil
}

// mergeSpills makes one private run of all from the i-th on.
func (tx *Tx) mergeSpills(i int) error {
	old := tx.spills[i:]
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, s := range old {
		rows = append(rows, s.NewIter(tx.slot, table.IterOptions{NoCache: true}))
		for _, h := range s.Tables {
			tombs = append(tombs, h.Tombstones())
		}
	}
	m := iterator.NewMerging(rows...)
	merged, err := tx.writeSpill(m, tombstone.Merge(tombs...), old[len(old)-1].seq)
	m.Close()
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", engine.SpaceError(err))
	}
	for _, s := range old {
		s.unref()
	}
	tx.spills = append(tx.spills[:i:i], merged)
	return nil
}

func (tx *Tx) dropSpills() {
	for _, s := range tx.spills {
		s.unref()
	}
	tx.spills = nil
}

// commitSpilled commits a transaction whose writes stand in private runs: their
// tables are synced already; one ingest frame in the log publishes them.
func (tx *Tx) commitSpilled() (uint64, error) {
	if tx.writes.Len() > 0 {
		if err := tx.spill(); err != nil {
			return 0, err
		}
	}
	tx.spills = slices.DeleteFunc(tx.spills, func(s *spill) bool { return len(s.Tables) == 0 })
	if len(tx.spills) == 0 {
		return tx.snapshot, nil
	}
	w := &engine.Write{Count: len(tx.spills), Durable: tx.durable, Reads: &tx.reads, Snapshot: tx.snapshot}
	runs := make([]*tree.Run, len(tx.spills))
	for i, s := range tx.spills {
		runs[i] = &s.Run
	}
	return tx.e.CommitIngest(w, runs)
}
