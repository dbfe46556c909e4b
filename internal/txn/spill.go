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
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/tree"
)

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
			e.Tables().Private.Bytes.Add(-h.Meta.Size)
		}
	})
}

// spill moves what the transaction holds in memory to a private run.
func (tx *Tx) spill() error {
	vis := tx.visibility()
	seq := vis.PrivateLimit - 1
	var rows []base.Iterator
	var tombs []tombstone.Tombstone
	count := 0
	for _, t := range append(tx.adopted, tx.writes) {
		rows = t.Iterators(rows)
		tombs = append(tombs, t.RangeDeletes()...)
		count += t.Len()
	}
	if len(tx.spills) == 0 {
		tx.e.AwaitRoom()
	}
	s, err := tx.writeSpill(iterator.NewMerging(rows...), tombstone.Build(tombs), seq, count, &tx.e.Tables().Private.Flushed)
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", reserve.SpaceError(err))
	}
	if tx.isLent() || cap(tx.buf) > gatherBytes(tx.e)*3/2 {
		// Iterators and slices handed out keep the old buffer alive, or it is larger
		// than the next will have to be.
		tx.buf, tx.lent, tx.handedOut = nil, false, 0
	}
	tx.buf = tx.buf[:0]
	tx.adopted, tx.adoptedIndex = nil, 0
	tx.writes = memtable.NewGrowing(seq + 1)
	tx.count(0)
	return tx.addSpill(s)
}

// writeSpill writes at most count rows as a private run with the given sequence, and counts what it has written.
func (tx *Tx) writeSpill(rows base.Iterator, ts *tombstone.List, seq uint64, count int, written *atomic.Int64) (*spill, error) {
	e := tx.e
	m := &compact.Merge{Rows: rows, Tombstones: ts, TargetBytes: merger.TargetTable}
	tables, err := e.Tables().WritePrivate(m, uint64(count), seq, written)
	if err != nil {
		return nil, err
	}
	for _, h := range tables {
		h.OnUnused = func(h *tree.Handle) { closeSpilled(e, h) }
		h.Ref()
	}
	return newSpill(e, tables, seq), nil
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
	runs := tx.private()
	if err := fits(runs); err != nil {
		return 0, err
	}
	w := &engine.Write{Count: len(runs), Durable: tx.durable, Reads: &tx.reads, Snapshot: tx.snapshot}
	return tx.e.CommitIngest(w, runs)
}

// private returns the private runs, oldest first.
func (tx *Tx) private() []*tree.Run {
	runs := make([]*tree.Run, len(tx.spills))
	for i, s := range tx.spills {
		runs[i] = &s.Run
	}
	return runs
}
