package tablefiles

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
)

// inMemory is what a table that is not open yet has in memory.
type inMemory struct {
	points *pointindex.Index
	pages  []*cache.Page
	seqs   []uint64
}

// finished are tables, by number, that are written and not open yet.
type finished map[uint64]inMemory

// attach hands over to an open table what it has in memory.
func (x finished) attach(h *tree.Handle) {
	m := x[h.Meta.Num]
	delete(x, h.Meta.Num)
	if m.points != nil {
		h.AttachIndex(m.points)
	}
	h.Adopt(m.pages)
	h.AdoptSeqs(m.seqs)
}

// free gives back what was not attached.
func (x finished) free(pages *cache.Cache) {
	for _, m := range x {
		if m.points != nil {
			m.points.Free()
		}
		table.DiscardPages(pages, m.pages)
	}
}

// output is a table being written. Its point index is built as soon as it is finished:
// a builder takes more memory than the index, and on the Go heap.
type output struct {
	*table.Writer
	f      *Files
	num    uint64
	rows   uint64              // an index is reserved for so many
	points *pointindex.Builder // nil: none is made
	made   finished
}

// newOutput begins a table, with an index over about so many rows, if there is room for
// one, and with its pages resident, if wanted and as far as there is room.
func (f *Files) newOutput(file newFile, level int, rows uint64, resident bool, effort Effort, made finished) *output {
	o := &output{f: f, made: made, num: file.num}
	opts := table.WriterOptions{
		Name: base.FileName(base.FileTable, file.num), Num: file.num, Store: f.Store, Codec: f.Profile.codec(level),
		BlockBytes: blockBytes(f.Raw(), f.Budget.Limit()), GivesWay: f.givesWay(effort),
	}
	if effort == Idle || effort == Awaited {
		opts.Helpers = compressors()
	}
	if f.Hasty(effort) {
		opts.Codec = block.S2
	}
	if f.Profile == ProfileBalanced { // what was compressed for the last level does not become worse on its way there
		opts.Also = block.Zstd
	}
	if resident {
		opts.Resident = f.Pages
	}
	if f.ReserveIndex(rows) {
		o.rows, o.points = rows, pointindex.NewBuilder(f.Budget)
		opts.PointIndex = o.points
	}
	o.Writer = table.NewWriter(file.file, opts)
	return o
}

// givesWay returns what says whether a table is written on processors that nobody else wants only; nil: it is not.
func (f *Files) givesWay(effort Effort) func() bool {
	switch {
	case effort == Awaited || f.hurry.Load():
		return nil
	case effort == Flush:
		return func() bool { return f.Pressed == nil || !f.Pressed() }
	}
	return func() bool { return true }
}

// release gives back what was reserved for the index.
func (o *output) release() {
	if o.points != nil {
		o.f.ReleaseIndex(o.rows)
		o.points.Discard()
		o.points = nil
	}
}

// Finish implements compact.Output.
func (o *output) Finish() (base.TableMeta, error) {
	defer o.release()
	meta, err := o.Writer.Finish()
	if err != nil {
		return meta, err
	}
	m := inMemory{pages: o.TakePages(), seqs: o.PartSeqs()}
	if o.points != nil {
		if x, err := o.points.Build(); err == nil { // if not, the indexer finds out why
			m.points = x
		}
	}
	o.made[o.num] = m
	return meta, nil
}

// Abandon implements compact.Output.
func (o *output) Abandon() error {
	o.release()
	return o.Writer.Abandon()
}
