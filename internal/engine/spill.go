package engine

import (
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

// maxSpills is how many private runs a transaction keeps before it merges them.
const maxSpills = 6

// spill is a private sorted run of a transaction: tables that no edit names. Rows
// and tombstones are stored with sequence 0; while private, the run has the
// sequence of its newest entry. It is immutable; iterators may outlive its place
// in the transaction.
type spill struct {
	run
	e    *Engine
	seq  uint64 // private sequence
	refs atomic.Int32
	kept bool // the files have become part of the store
}

func (s *spill) ref() { s.refs.Add(1) }

func (s *spill) unref() {
	if s.refs.Add(-1) != 0 {
		return
	}
	for _, h := range s.tables {
		tables := []*handle{h}
		s.e.epochs.Retire(func() {
			if s.kept {
				h.Reader.Close()
			} else {
				s.e.discard(tables)
			}
		})
	}
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
	tx.spills = append(tx.spills, s)
	// Iterators and slices handed out keep the old buffer alive; it is not reused.
	tx.writes = memtable.NewGrowing(seq + 1)
	tx.buf = nil
	if len(tx.spills) > maxSpills {
		return tx.mergeSpills()
	}
	return nil
}

// writeSpill writes rows as a private run with the given sequence.
func (tx *Tx) writeSpill(rows base.Iterator, ts *tombstone.List, seq uint64) (*spill, error) {
	e := tx.e
	m := &compact.Merge{Rows: rows, Tombstones: ts, TargetBytes: targetTable}
	tables, err := e.writeTablesAs(m, 0, 0, seq)
	if err != nil {
		return nil, err
	}
	s := &spill{run: newRun(tables), e: e, seq: seq}
	s.maxSeq = seq
	s.refs.Store(1)
	return s, nil
}

// mergeSpills makes one private run of all.
func (tx *Tx) mergeSpills() error {
	var rows []base.Iterator
	var tombs []*tombstone.List
	for _, s := range tx.spills {
		rows = append(rows, s.newIter(tx.slot, table.IterOptions{NoCache: true}))
		for _, h := range s.tables {
			tombs = append(tombs, h.Tombstones())
		}
	}
	m := iterator.NewMerging(rows...)
	merged, err := tx.writeSpill(m, tombstone.Merge(tombs...), tx.spills[len(tx.spills)-1].seq)
	m.Close()
	if err != nil {
		return fmt.Errorf("spill of a large transaction: %w", spaceError(err))
	}
	tx.dropSpills()
	tx.spills = []*spill{merged}
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
		for _, s := range spills {
			s.kept = true
		}
		for _, t := range tables {
			e.handles[t.meta.Num] = t
		}
		e.insertLayer(l, mem)
	}, abandon: func() {
		for _, t := range tables {
			t.Reader.Close()
		}
	}}
	return e.enqueue(p, 0), nil
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
