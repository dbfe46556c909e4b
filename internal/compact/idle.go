package compact

import (
	"cmp"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

const (
	// spareShare: what lies above the bottom may hide one part in this many of it.
	spareShare = 10
	// garbageShare: a bottom table is rewritten if one row in this many is a tombstone.
	garbageShare = 20
	// smallTables is how many neighbours of a level have to fit into one
	// table for joining them to be worthwhile.
	smallTables = 4
	// manySmall tables of a level may be less than half full before joining them is urgent.
	manySmall = 64
)

// idle picks work that nobody waits for.
func (p *picker) idle() (Job, bool) {
	for _, pick := range []func() (Job, bool){
		p.notInVain(p.pushTombstones), p.notInVain(p.pushWeight), p.cleanBottom,
		func() (Job, bool) { return p.joinSmall(manifest.Bottom, p.staysIn(manifest.Bottom)) },
		p.compressWell,
	} {
		if job, ok := pick(); ok {
			return job, true
		}
	}
	return p.joinSome()
}

// pushTombstones picks a table above the bottom whose tombstones can be dropped
// once they get there: range deletes always, since one can hide any amount;
// deletes in a store so small that nothing is saved by waiting. In a larger one
// they count by weight, else a thousand deletes scattered over a terabyte would
// make it rewrite itself.
func (p *picker) pushTombstones() (Job, bool) {
	small := p.total() <= p.in.BaseBytes
	want := func(t *base.TableMeta) bool {
		return p.droppable(t) && (t.RangeDeletes > 0 || small)
	}
	job, ok := p.intoBase(func(c cluster) bool { return slices.ContainsFunc(c.tables, want) })
	for level := 1; level < manifest.Bottom && !ok; level++ {
		job, ok = p.cheapest(level, want)
	}
	return forDeletes(job), ok
}

func (p *picker) total() (n int64) {
	for _, b := range p.bytes {
		n += b
	}
	return n
}

// pushWeight picks from the level with the greatest weight, while all weights
// together are over the share allowed.
func (p *picker) pushWeight() (Job, bool) {
	weights, sum := p.weights()
	if sum <= p.bytes[manifest.Bottom]/spareShare {
		return Job{}, false
	}
	order := []int{0, 1, 2, 3, 4, 5}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	for _, level := range order {
		pick := func() (Job, bool) { return p.cheapest(level, nil) }
		if level == 0 {
			pick = func() (Job, bool) { return p.intoBase(nil) }
		}
		if job, ok := pick(); ok {
			job.Reason = ReasonSpace
			return job, true
		}
	}
	return Job{}, false
}

// weights estimates how many bytes the tables of each level above the bottom
// hold or hide there, whichever is more. A row hides at most one row of the
// bottom; a delete counts twice, since what it hides is not replaced by anything, or not at all while a snapshot keeps that.
func (p *picker) weights() (w [manifest.Bottom]int64, sum int64) {
	bottom := p.v.Levels[manifest.Bottom]
	for level, t := range p.v.Tables() {
		if level == manifest.Bottom {
			break
		}
		from, to := under(bottom, boundsOf(t))
		rows := uint64(0)
		for _, b := range bottom[from:to] {
			rows += b.Entries
		}
		count := t.Entries - t.Deletes
		if p.droppable(t) {
			count = t.Entries + t.Deletes
		}
		hides := float64(0)
		if rows > 0 {
			row := float64(totalBytes(bottom[from:to])) / float64(rows)
			hides = row * float64(min(count, rows))
		}
		weight := max(t.Size, int64(hides))
		w[level] += weight
		sum += weight
	}
	return w, sum
}

// cleanBottom picks the bottom table with the most garbage that a merge is known
// to drop.
func (p *picker) cleanBottom() (Job, bool) {
	var worst *base.TableMeta
	most := int64(0)
	for _, t := range p.v.Levels[manifest.Bottom] {
		if g := p.garbage(t); g > most {
			worst, most = t, g
		}
	}
	if worst == nil {
		return Job{}, false
	}
	job := p.job(manifest.Bottom, []*base.TableMeta{worst}, manifest.Bottom)
	job.Reason = ReasonGarbage
	return job, p.fits(&job)
}

// garbage estimates the bytes that rewriting a bottom table frees, 0 if that is
// too little or nothing would change, or it cannot be read. A table that a bottommost merge wrote when
// every reader was past its rows is as clean as it gets, tombstones or not.
func (p *picker) garbage(t *base.TableMeta) int64 {
	if p.in.Unreadable[t.Num] {
		return 0
	}
	left, known := p.in.Leftovers[t.Num]
	if g := left.garbage(&p.in); g > t.Size/spareShare {
		return g
	}
	if !p.droppable(t) || known && left.Snapshot >= t.MaxSeq {
		return 0
	}
	row := t.Size / int64(max(t.Entries+t.RangeDeletes, 1))
	if t.RangeDeletes > 0 || t.Deletes*garbageShare >= t.Entries || p.total() <= p.in.BaseBytes {
		return int64(t.Deletes+t.RangeDeletes)*row + 1
	}
	return 0
}

// joinSmall picks neighbours of a level that fit into one table, and of which none stays as it is. A table
// may be full before it has its size: long keys fill its index first.
func (p *picker) joinSmall(level int, stays func(*base.TableMeta) bool) (Job, bool) {
	tables := p.v.Levels[level]
	from, size := 0, int64(0)
	for to, t := range tables {
		if stays(t) {
			from, size = to+1, 0
			continue
		}
		for size += t.Size; size > p.in.TargetFileBytes && from <= to; from++ {
			size -= tables[from].Size
		}
		last := to == len(tables)-1 || size+tables[to+1].Size > p.in.TargetFileBytes || stays(tables[to+1])
		if !last || to+1-from < smallTables {
			continue
		}
		job := p.job(level, tables[from:to+1:to+1], level)
		job.Reason, job.joins = ReasonSmall, true
		if p.fits(&job) {
			return job, true
		}
	}
	return Job{}, false
}

// joinMany picks small neighbours of a level that has many, since each table takes a descriptor. What is put in the order
// of keys moves there as it was flushed, in tables that are the smaller the less memory there is. Those that are at least
// half full are left as they are, so that a row is seldom joined more than once or twice.
func (p *picker) joinMany() (Job, bool) {
	for level := manifest.Bottom; level > 0; level-- {
		full, small := p.staysIn(level), 0
		stays := func(t *base.TableMeta) bool { return t.Size >= p.in.TargetFileBytes/2 || full(t) }
		for _, t := range p.v.Levels[level] {
			if !stays(t) {
				small++
			}
		}
		if small <= manySmall {
			continue
		}
		if job, ok := p.joinSmall(level, stays); ok {
			return job, true
		}
	}
	return Job{}, false
}

// quick reports whether a table of the bottom was compressed with little effort, and is now
// to be compressed well.
func (p *picker) quick(t *base.TableMeta) bool {
	return p.in.Thorough && p.in.Codecs && p.in.Leftovers[t.Num].Quick && !p.in.Unreadable[t.Num]
}

// compressWell picks such a table.
func (p *picker) compressWell() (Job, bool) {
	for _, t := range p.v.Levels[manifest.Bottom] {
		if p.quick(t) {
			job := p.job(manifest.Bottom, []*base.TableMeta{t}, manifest.Bottom)
			job.Reason = ReasonQuick
			if p.fits(&job) {
				return job, true
			}
		}
	}
	return Job{}, false
}

// staysIn returns a function that reports whether a table of a level is not to be joined with others there.
func (p *picker) staysIn(level int) func(*base.TableMeta) bool {
	return func(t *base.TableMeta) bool { return p.in.Leftovers[t.Num].Full == level || p.in.Unreadable[t.Num] }
}
