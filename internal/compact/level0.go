package compact

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
)

// cluster is a set of tables of level 0 that can leave it together: no other table
// there overlaps any of them.
type cluster struct {
	tables []*base.TableMeta
	hull   bounds
}

// clusters cuts level 0 into the smallest clusters, in order of their keys.
func (p *picker) clusters() []cluster {
	all := slices.Clone(p.v.Overlapping(0, nil, nil))
	slices.SortFunc(all, func(a, b *base.TableMeta) int { return bytes.Compare(a.Smallest, b.Smallest) })
	var out []cluster
	for _, t := range all {
		if n := len(out); n > 0 && !out[n-1].hull.before(t.Smallest) {
			out[n-1].tables = append(out[n-1].tables, t)
			out[n-1].hull = out[n-1].hull.union(boundsOf(t))
			continue
		}
		out = append(out, cluster{[]*base.TableMeta{t}, boundsOf(t)})
	}
	return out
}

// intoBase picks the tables of level 0 that are best merged into the base level:
// the cluster with the oldest table, and its neighbours as long as they come at no
// cost. want, if not nil, restricts which clusters may be picked.
func (p *picker) intoBase(want func(cluster) bool) (Job, bool) {
	all := p.clusters()
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].age(), all[b].age()) })
	for _, i := range order {
		if want != nil && !want(all[i]) {
			continue
		}
		for _, source := range [][]*base.TableMeta{p.neighbours(all, i), all[i].tables} {
			if job := p.job(0, source, p.base); p.fits(&job) {
				return job, true
			}
		}
	}
	return Job{}, false
}

// age returns the sequence that says how long the cluster has been due: the
// smaller, the older its oldest table.
func (c cluster) age() uint64 {
	age := c.tables[0].MaxSeq
	for _, t := range c.tables {
		age = min(age, t.MaxSeq)
	}
	return age
}

// neighbours joins the i-th cluster with those beside it where no table of the
// base level lies between them that neither overlaps.
func (p *picker) neighbours(all []cluster, i int) []*base.TableMeta {
	out := p.v.Levels[p.base]
	source, hull := slices.Clone(all[i].tables), all[i].hull
	room := p.joinBytes() - totalBytes(source)
	joins := func(c cluster) bool {
		both := hull.union(c.hull)
		f1, t1 := under(out, hull)
		f2, t2 := under(out, c.hull)
		f, t := under(out, both)
		size := totalBytes(c.tables)
		extra := (t - f) - (t1 - f1) - (t2 - f2)
		if size > room || extra > 0 || (t2 > f2) != (t1 > f1) {
			return false
		}
		source, hull, room = append(source, c.tables...), both, room-size
		return true
	}
	for lo := i - 1; lo >= 0 && joins(all[lo]); lo-- {
	}
	for hi := i + 1; hi < len(all) && joins(all[hi]); hi++ {
	}
	slices.SortStableFunc(source, func(a, b *base.TableMeta) int { return bytes.Compare(a.Smallest, b.Smallest) })
	return source
}

// tooSmall reports whether a merge into the base level would rewrite so much there
// that joining runs within level 0 first is cheaper.
func (p *picker) tooSmall(j *Job) bool {
	if len(j.Inputs) < 2 {
		return false
	}
	return totalBytes(j.Inputs[1].Tables) > int64(p.in.Multiplier)*totalBytes(j.Inputs[0].Tables)
}

// joinRuns picks the newest runs of level 0 to be merged into one, two of any size at least.
func (p *picker) joinRuns() (Job, bool) { return p.join(p.newest(2, math.MaxInt64)) }

// JoinSmall returns the job that joins the newest runs of level 0, if there are more than twice as many as make a merge
// due, as far as one table holds them. It is for a store that may live too briefly for what is due: where each life adds
// a run, level 0 has few tables for its bytes all the same.
func JoinSmall(v *manifest.Version, in Inputs) (Job, bool) {
	p := newPicker(v, in)
	if len(v.L0) <= 2*p.in.L0Trigger {
		return Job{}, false
	}
	return p.join(p.newest(1, p.in.TargetFileBytes))
}

// newest returns the newest runs of level 0, up to most bytes of them, as long as each but the first few is at most twice
// as large as those before it: so a row is rewritten a number of times logarithmic in the size level 0 reaches.
func (p *picker) newest(few int, most int64) []manifest.Run {
	n, size := 0, int64(0)
	for i := range p.v.L0 {
		r := &p.v.L0[i]
		if n >= few && r.Bytes() > 2*size || size+r.Bytes() > most || !p.readable(r.Tables) {
			break
		}
		size += r.Bytes()
		n++
	}
	return p.v.L0[:n]
}

// joinSome picks the runs of level 0, each next to the one before, of which most can be merged into one
// where there is Room for little only. What is hidden in them makes room for more.
func (p *picker) joinSome() (Job, bool) {
	var most []manifest.Run
	mostBytes := int64(0)
	from, size := 0, int64(0)
	for i := range p.v.L0 {
		for size += p.v.L0[i].Bytes(); size > p.in.Room; from++ {
			size -= p.v.L0[from].Bytes()
		}
		if n := i + 1 - from; n > len(most) || n == len(most) && size > mostBytes {
			most, mostBytes = p.v.L0[from:i+1], size
		}
	}
	return p.join(most)
}

// join merges some runs of level 0, the newest first, each next to the one before, into one.
func (p *picker) join(runs []manifest.Run) (Job, bool) {
	if len(runs) < 2 {
		return Job{}, false
	}
	var source []*base.TableMeta
	for i := range runs {
		source = append(source, runs[i].Tables...)
	}
	job := Job{
		Inputs: []Input{{0, source}}, OutRun: runs[0].ID, TargetFileBytes: p.in.TargetFileBytes, Reason: ReasonRuns,
		GrandparentBytes: grandparentFiles * p.in.TargetFileBytes, hull: hullOf(source),
	}
	from, to := under(p.v.Levels[p.base], job.hull)
	job.Grandparents = p.v.Levels[p.base][from:to:to]
	return job, p.fits(&job)
}
