package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/group"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// CommitIngest makes private runs, oldest first, one commit. It begins a segment,
// so that its place in the order of sequences is one between memtables.
func (e *Engine) CommitIngest(w *Write, runs []*tree.Run) (uint64, error) {
	need := tree.IngestBytes(runs)
	if need > frame.MaxShortBytes {
		return 0, fmt.Errorf("%w: the description of the transaction's tables takes %d bytes", base.ErrValueTooLarge, need)
	}
	tables, err := e.openIngested(runs)
	if err != nil {
		return 0, reserve.SpaceError(err)
	}
	w.begin()
	e.throttle(tree.SizeOf(tables))
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for ready := false; !ready; {
		err := e.refuse()
		if err == nil && !onlyDeletes(tables) && e.lacksRoom(need) {
			if err = e.awaitMerge(need, &w.waited); err == nil {
				continue
			}
		}
		if err == nil {
			ready, err = e.makeSegment(need)
		}
		if ready && err == nil && !onlyDeletes(tables) {
			ready, err = e.secure(c.spare, int(tree.SizeOf(tables)))
		}
		if ready && err == nil {
			ready, err = e.validate(w)
		}
		if err != nil {
			closeAll(tables)
			return 0, err
		}
	}
	p := e.appendIngest(w, runs, tables)
	err = c.queue.Await(p)
	c.mu.Lock()
	c.ingesting--
	c.cond.Broadcast()
	return p.Last, err
}

// openIngested opens the tables of private runs once more, for when they are part
// of the store. They get their sequences later.
func (e *Engine) openIngested(runs []*tree.Run) (tables []*tree.Handle, err error) {
	for _, r := range runs {
		for _, private := range r.Tables {
			meta := *private.Meta
			h, err := e.tables.Open(&meta)
			if err != nil {
				closeAll(tables)
				return nil, err
			}
			tables = append(tables, h)
		}
	}
	return tables, nil
}

// onlyDeletes reports whether tables hold no value.
func onlyDeletes(tables []*tree.Handle) bool {
	return !slices.ContainsFunc(tables, func(h *tree.Handle) bool { return h.Meta.Entries > h.Meta.Deletes })
}

func closeAll(tables []*tree.Handle) {
	for _, h := range tables {
		h.Reader.Close()
	}
}

// appendIngest gives the tables of the runs their real sequences and writes the frame.
func (e *Engine) appendIngest(w *Write, runs []*tree.Run, tables []*tree.Handle) *group.Commit {
	c := &e.commit
	edit := &manifest.Edit{}
	rest := tables
	for i, r := range runs {
		seq := c.nextSeq + uint64(i)
		for _, h := range rest[:len(r.Tables)] {
			tablefiles.Resequence(h.Meta, seq)
			h.Reader.Resequence(seq)
			e.counters.CommittedBytes.Add(h.Meta.RawBytes)
			edit.Added = append(edit.Added, manifest.Added{Run: seq, Table: h.Meta})
		}
		rest = rest[len(r.Tables):]
	}
	first := c.nextSeq
	c.nextSeq += uint64(w.Count)
	end, sum := c.lastEnd()
	e.rotate(end, sum)
	h := frame.Header{Kind: frame.KindIngest, Seq: first, Count: uint32(w.Count), Durable: uint64(c.log.End())}
	payload := edit.Append(nil)
	c.mem.Seg.Append(h, payload)
	c.logged += int64(frame.PaddedBytes(len(payload)))
	c.ingesting++
	mem := c.mem
	l := &tree.Layer{Ingest: tree.IngestRuns(tables), Seq: c.nextSeq - 1}
	p := &group.Commit{Durable: w.Durable, Shown: func() {
		tree.Keep(runs)
		tree.HandOver(runs, tables)
		for _, t := range tables {
			e.handles[t.Meta.Num] = t
		}
		e.insertLayer(l, mem)
	}, Failed: func(err error) {
		closeAll(tables)
		if errors.Is(err, base.ErrCommitUnknown) { // a frame in the log may name them
			tree.Keep(runs)
		}
	}}
	return e.enqueue(p, 0)
}

// insertLayer publishes l right below the memtable of the segment it stands in.
func (e *Engine) insertLayer(l *tree.Layer, above *tree.Memory) {
	rs := e.State()
	layers := slices.Clone(rs.Layers)
	i := slices.IndexFunc(layers, func(o *tree.Layer) bool { return o.Mem == above })
	e.publish(e.newState(slices.Insert(layers, i+1, l), rs.Version))
}
