package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// CommitIngest makes private runs, oldest first, one commit. It begins a segment,
// so that its place in the order of sequences is one between memtables.
func (e *Engine) CommitIngest(w *Write, runs []*tree.Run) (uint64, error) {
	w.checked = w.Snapshot
	e.throttle()
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	need := e.ingestBytes(runs)
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
	p, err := e.appendIngest(w, runs)
	if err != nil {
		return 0, err
	}
	err = e.await(p)
	c.ingesting--
	c.cond.Broadcast()
	return p.last, err
}

// ingestBytes bounds the size of the ingest frame.
func (e *Engine) ingestBytes(runs []*tree.Run) int {
	n := 1024
	for _, r := range runs {
		for _, h := range r.Tables {
			n += 256 + len(h.Meta.Smallest) + len(h.Meta.Largest)
		}
	}
	return n
}

// appendIngest opens the tables under their real sequences and writes the frame.
func (e *Engine) appendIngest(w *Write, runs []*tree.Run) (*pending, error) {
	c := &e.commit
	edit := &manifest.Edit{}
	var tables []*tree.Handle
	for i, r := range runs {
		for _, old := range r.Tables {
			meta := *old.Meta
			tablefiles.Resequence(&meta, c.nextSeq+uint64(i))
			h, err := e.tables.Open(&meta)
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
	c.mem.Seg.Append(h, edit.Append(nil))
	c.ingesting++
	mem := c.mem
	l := &tree.Layer{Ingest: tree.IngestRuns(tables), Seq: c.nextSeq - 1}
	p := &pending{durable: w.Durable, install: func() {
		keepFiles(runs)
		for _, t := range tables {
			e.handles[t.Meta.Num] = t
		}
		e.insertLayer(l, mem)
	}, abandon: func(err error) {
		for _, t := range tables {
			t.Reader.Close()
		}
		if errors.Is(err, base.ErrCommitUnknown) { // a frame in the log may name them
			keepFiles(runs)
		}
	}}
	return e.enqueue(p, 0), nil
}

// keepFiles makes the files of private runs outlive them.
func keepFiles(runs []*tree.Run) {
	for _, r := range runs {
		for _, h := range r.Tables {
			h.Kept = true
		}
	}
}

// insertLayer publishes l right below the memtable of the segment it stands in.
func (e *Engine) insertLayer(l *tree.Layer, above *tree.Memory) {
	rs := e.state.Load()
	layers := slices.Clone(rs.Layers)
	i := slices.IndexFunc(layers, func(o *tree.Layer) bool { return o.Mem == above })
	e.publish(e.newState(slices.Insert(layers, i+1, l), rs.Version))
}
