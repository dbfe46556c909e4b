package engine

import (
	"errors"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/group"
	"github.com/cairndb/cairn/internal/reserve"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
)

// CommitIngest makes private runs, oldest first, one commit. It begins a segment,
// so that its place in the order of sequences is one between memtables. Their description, as tree.IngestBytes has it,
// takes no more than a frame of frame.MaxShortBytes.
func (e *Engine) CommitIngest(w *Write, runs []*tree.Run) (uint64, error) {
	need := tree.IngestBytes(runs)
	tables, err := e.tables.OpenIngested(runs)
	if err != nil {
		return 0, reserve.SpaceError(err)
	}
	puts := tablefiles.HoldPuts(tables)
	w.begin()
	e.throttle(tree.SizeOf(tables))
	c := &e.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	for ready := false; !ready; {
		err := e.refuse()
		if err == nil && puts && e.lacksRoom(need) {
			if err = e.awaitMerge(need, &w.waited); err == nil {
				continue
			}
		}
		if err == nil {
			ready, err = e.makeSegment(need)
		}
		if ready && err == nil && puts {
			ready, err = e.secure(int64(c.spare.Seg.Capacity()), tree.SizeOf(tables))
		}
		if ready && err == nil {
			ready, err = e.validate(w)
		}
		if err != nil {
			tablefiles.CloseAll(tables)
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

// appendIngest gives the tables of the runs their real sequences and writes the frame.
func (e *Engine) appendIngest(w *Write, runs []*tree.Run, tables []*tree.Handle) *group.Commit {
	c := &e.commit
	edit, first := tablefiles.Sequence(runs, tables, c.nextSeq), c.nextSeq
	for _, h := range tables {
		e.events.CommittedBytes.Add(h.Meta.RawBytes)
	}
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
		e.tables.Private.Bytes.Add(-tree.SizeOf(tables))
		e.installer.Handles.Add(tables)
		rs := e.State()
		e.installer.Publish(rs.WithBelow(mem, l), rs.Version)
	}, Failed: func(err error) {
		tablefiles.CloseAll(tables)
		if errors.Is(err, base.ErrCommitUnknown) { // a frame in the log may name them
			tree.Keep(runs)
		}
	}}
	return e.enqueue(p, 0)
}
