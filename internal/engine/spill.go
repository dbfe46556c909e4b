package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tombstone"
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
	run
	e    *Engine
	seq  uint64 // private sequence
	refs atomic.Int32
}

func newSpill(e *Engine, tables []*handle, seq uint64) *spill {
	s := &spill{run: newRun(tables), e: e, seq: seq}
	s.maxSeq = seq
	s.refs.Store(1)
	return s
}

func (s *spill) ref() { s.refs.Add(1) }

func (s *spill) unref() {
	if s.refs.Add(-1) != 0 {
		return
	}
	for _, h := range s.tables {
		h.unref()
	}
}

// closeSpilled closes a table of a private run nobody refers to any more, and
// removes it unless it has become part of the store.
func (e *Engine) closeSpilled(h *handle) {
	e.epochs.Retire(func() {
		if h.kept {
			h.Reader.Close()
		} else {
			e.discard([]*handle{h})
		}
	})
}

// unsequenced stores rows and tombstones with sequence 0.
type unsequenced struct{ compact.Output }

func (u unsequenced) Add(key []byte, _ uint64, kind base.Kind, value []byte) error {
	return u.Output.Add(key, 0, kind, value)
}

func (u unsequenced) AddRangeDelete(low, high []byte, _ uint64) error {
	return u.Output.AddRangeDelete(low, high, 0)
}

func setGlobalSeq(m *base.TableMeta, seq uint64) {
	if seq != 0 {
		m.GlobalSeq, m.MinSeq, m.MaxSeq = seq, seq, seq
	}
}

// spill moves what the transaction holds in memory to a private run.
func (tx *Tx) spill() error {
	vis := tx.visibility()
	seq := vis.PrivateLimit - 1
	s, err := tx.writeSpill(iterator.NewMerging(tx.writes.Iterators(nil)...), tombstone.Build(tx.writes.RangeDeletes()), seq)
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", spaceError(err))
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
		if bytesOf(tx.spills[n-spillFan].tables) > 2*bytesOf(tx.spills[n-1].tables) {
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
	a, b := s.tables, newer.tables
	switch {
	case len(a) == 0 || len(b) == 0:
		return nil
	case b[len(b)-1].meta.EndsBefore(a[0].meta.Smallest):
		a, b = b, a
	case !a[len(a)-1].meta.EndsBefore(b[0].meta.Smallest):
		return nil
	}
	tables := slices.Concat(a, b)
	for _, h := range tables {
		h.ref()
	}
	return newSpill(s.e, tables, newer.seq)
}

// writeSpill writes rows as a private run with the given sequence.
func (tx *Tx) writeSpill(rows base.Iterator, ts *tombstone.List, seq uint64) (*spill, error) {
	e := tx.e
	m := &compact.Merge{Rows: rows, Tombstones: ts, TargetBytes: targetTable}
	tables, err := e.writeTablesAs(m, 0, 0, seq)
	if err != nil {
		return nil, err
	}
	for _, h := range tables {
		h.close = e.closeSpilled
		h.ref()
	}
	return newSpill(e, tables, seq), nil
}

// mergeSpills makes one private run of all from the i-th on.
func (tx *Tx) mergeSpills(i int) error {
	old := tx.spills[i:]
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, s := range old {
		rows = append(rows, s.newIter(tx.slot, table.IterOptions{NoCache: true}))
		for _, h := range s.tables {
			tombs = append(tombs, h.Tombstones())
		}
	}
	m := iterator.NewMerging(rows...)
	merged, err := tx.writeSpill(m, tombstone.Merge(tombs...), old[len(old)-1].seq)
	m.Close()
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", spaceError(err))
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
	tx.spills = slices.DeleteFunc(tx.spills, func(s *spill) bool { return len(s.tables) == 0 })
	if len(tx.spills) == 0 {
		return tx.snapshot, nil
	}
	w := &Write{Count: len(tx.spills), Durable: tx.durable, Reads: &tx.reads, Snapshot: tx.snapshot}
	return tx.e.commitIngest(w, tx.spills)
}

// commitIngest makes private runs, oldest first, one commit. It begins a segment,
// so that its place in the order of sequences is one between memtables.
func (e *Engine) commitIngest(w *Write, spills []*spill) (uint64, error) {
	w.checked = w.Snapshot
	e.throttle()
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	need := e.ingestBytes(spills)
	if need > frame.MaxBytes {
		return 0, fmt.Errorf("%w: the description of the transaction's tables takes %d bytes", base.ErrValueTooLarge, need)
	}
	for ready := false; !ready; {
		if err := e.refuse(); err != nil {
			return 0, err
		}
		var err error
		if ready, err = e.makeSegment(need); ready && err == nil {
			ready, err = e.validate(w)
		}
		if err != nil {
			return 0, err
		}
	}
	p, err := e.appendIngest(w, spills)
	if err != nil {
		return 0, err
	}
	err = e.await(p)
	c.ingesting--
	c.cond.Broadcast()
	return p.last, err
}

// ingestBytes bounds the size of the ingest frame.
func (e *Engine) ingestBytes(spills []*spill) int {
	n := 1024
	for _, s := range spills {
		for _, h := range s.tables {
			n += 256 + len(h.meta.Smallest) + len(h.meta.Largest)
		}
	}
	return n
}

// appendIngest opens the tables under their real sequences and writes the frame.
func (e *Engine) appendIngest(w *Write, spills []*spill) (*pending, error) {
	c := &e.commit
	edit := &manifest.Edit{}
	var tables []*handle
	for i, s := range spills {
		for _, old := range s.tables {
			meta := *old.meta
			setGlobalSeq(&meta, c.nextSeq+uint64(i))
			h, err := e.openTable(&meta)
			if err != nil {
				for _, t := range tables {
					t.Reader.Close()
				}
				return nil, err
			}
			tables = append(tables, h)
			e.counters.committedBytes.Add(meta.RawBytes)
			edit.Added = append(edit.Added, manifest.Added{Run: meta.GlobalSeq, Table: &meta})
		}
	}
	first := c.nextSeq
	c.nextSeq += uint64(w.Count)
	end, sum := c.lastEnd()
	e.rotate(end, sum)
	h := frame.Header{Kind: frame.KindIngest, Seq: first, Count: uint32(w.Count), Durable: uint64(c.durable)}
	c.mem.seg.Append(h, edit.Append(nil))
	c.ingesting++
	mem := c.mem
	l := &layer{ingest: ingestRuns(tables), seq: c.nextSeq - 1}
	p := &pending{durable: w.Durable, install: func() {
		keepSpills(spills)
		for _, t := range tables {
			e.handles[t.meta.Num] = t
		}
		e.insertLayer(l, mem)
	}, abandon: func(err error) {
		for _, t := range tables {
			t.Reader.Close()
		}
		if errors.Is(err, base.ErrCommitUnknown) { // a frame in the log may name them
			keepSpills(spills)
		}
	}}
	return e.enqueue(p, 0), nil
}

// keepSpills makes the files of private runs outlive them.
func keepSpills(spills []*spill) {
	for _, s := range spills {
		for _, h := range s.tables {
			h.kept = true
		}
	}
}

// insertLayer publishes l right below the memtable of the segment it stands in.
func (e *Engine) insertLayer(l *layer, above *memory) {
	rs := e.state.Load()
	layers := slices.Clone(rs.layers)
	i := slices.IndexFunc(layers, func(o *layer) bool { return o.mem == above })
	e.publish(e.newState(slices.Insert(layers, i+1, l), rs.version))
}

// ingestRuns groups ingested tables by their sequence, newest first.
func ingestRuns(tables []*handle) []run {
	var runs []run
	for len(tables) > 0 {
		n := 1
		for n < len(tables) && tables[n].meta.GlobalSeq == tables[0].meta.GlobalSeq {
			n++
		}
		runs = append(runs, newRun(tables[:n:n]))
		tables = tables[n:]
	}
	slices.Reverse(runs)
	return runs
}
