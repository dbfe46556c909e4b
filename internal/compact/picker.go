package compact

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Defaults of Inputs.
const (
	DefaultL0Trigger       = 4
	DefaultMaxRuns         = 8
	DefaultMultiplier      = 10
	DefaultBaseBytes       = 64 << 20
	DefaultTargetFileBytes = 16 << 20
)

// Inputs is what a decision depends on besides the version.
type Inputs struct {
	// Idle asks for work that is not urgent as well.
	Idle bool
	// Readers are the sequences that are read at, ascending: those of snapshots, and the newest one that may be seen
	// now. Others will read at the greatest of them and above. What none of them sees is garbage.
	Readers tombstone.Stripes
	// Leftovers says of tables, by number, what the merge that wrote them could not
	// drop. Tables may be missing.
	Leftovers map[uint64]Leftover

	// Tombstones are the range deletes of tables, by number. Tables may be missing.
	Tombstones map[uint64]*tombstone.List

	// InVain is how many bytes merges for the sake of deletes have written in vain: see Account.
	InVain int64

	// Unreadable are the numbers of tables that no job is to read.
	Unreadable map[uint64]bool

	// Codecs: the bottom level has a codec of its own, so that a table is never
	// moved there without being rewritten.
	Codecs bool
	// Thorough: nobody has written for so long that tables of the bottom which were
	// compressed with little effort are now compressed well, and what deletes hide goes, whatever was written in vain for that.
	Thorough bool
	// Room is how many bytes a job may write at most, as far as its inputs tell: there is no space
	// for more. 0: any number.
	Room int64
	// Zero selects the default.
	L0Trigger       int   // runs in level 0 that make a merge due
	MaxRuns         int   // runs of all kinds that reads are to be kept below
	Multiplier      int   // ratio of the sizes of two levels
	BaseBytes       int64 // least size of the base level before there is a level below it
	TargetFileBytes int64 // size of a table
}

// oldest returns the least sequence that is read at, now or later.
func (in *Inputs) oldest() uint64 {
	if len(in.Readers) == 0 {
		return 0
	}
	return in.Readers[0]
}

// read reports whether somebody reads at a sequence from one to another, now or later.
func (in *Inputs) read(from, to uint64) bool {
	i, n := in.Readers.Of(from), len(in.Readers)
	return n == 0 || in.Readers[n-1] <= to || i < n && in.Readers[i] <= to
}

// Reason says why a job was picked.
type Reason string

// The reasons, most urgent first.
const (
	ReasonRuns         Reason = "runs in level 0"
	ReasonSize         Reason = "size of a level"
	ReasonRangeDeletes Reason = "range deletes"
	ReasonDeletes      Reason = "deletes"
	ReasonSpace        Reason = "space amplification"
	ReasonGarbage      Reason = "garbage at the bottom"
	ReasonSmall        Reason = "small tables"
	ReasonQuick        Reason = "compressed quickly"
	ReasonManual       Reason = "asked for"
)

// Job is one merge or move. Its outputs replace its inputs in one edit.
type Job struct {
	Inputs   []Input // the source first, then, if any, the out level
	OutLevel int
	OutRun   uint64 // id of the run the outputs form if OutLevel is 0; else 0

	// Move: the tables go to OutLevel as they are; nothing is to be rewritten.
	Move bool
	// Bottommost: nothing older than the inputs lies under their keys, so
	// tombstones that every reader is past can be dropped.
	Bottommost bool

	// Quick: what is written is likely to be merged again soon, so that little effort is
	// put into compressing it; if it is not, an idle job does that.
	Quick bool

	// Hiding: for the sake of what deletes hide, though no size of a level makes it due and the store is written to: see Account.
	Hiding bool

	TargetFileBytes int64
	// Grandparents are the tables of the next deeper level that is not empty under
	// the job's keys. An output should end before it overlaps more than
	// GrandparentBytes of them, range tombstones included, so that merging it
	// further stays cheap.
	Grandparents     []*base.TableMeta
	GrandparentBytes int64

	Reason Reason

	joins bool // small tables of a level, so that there are fewer
	hull  bounds
}

// Input is the tables of one level that take part in a job.
type Input struct {
	Level  int
	Tables []*base.TableMeta
}

// Edit returns what the job changes in the manifest, but for tables that it writes.
func (j *Job) Edit() *manifest.Edit {
	edit := &manifest.Edit{}
	for _, in := range j.Inputs {
		for _, t := range in.Tables {
			edit.Removed = append(edit.Removed, manifest.Removed{Level: in.Level, Num: t.Num})
			if j.Move {
				edit.Added = append(edit.Added, manifest.Added{Level: j.OutLevel, Table: t})
			}
		}
	}
	return edit
}

// Bytes returns the size of the job's inputs.
func (j *Job) Bytes() (n int64) {
	for _, in := range j.Inputs {
		n += totalBytes(in.Tables)
	}
	return n
}

// RawBytes returns the bytes of keys and values in the job's inputs.
func (j *Job) RawBytes() (n int64) {
	for _, in := range j.Inputs {
		for _, t := range in.Tables {
			n += t.RawBytes
		}
	}
	return n
}

// Tables returns how many tables the job reads.
func (j *Job) Tables() (n int) {
	for _, in := range j.Inputs {
		n += len(in.Tables)
	}
	return n
}

// MaxRows estimates from above how many rows one table that the job writes will
// have. Tables may hold more than their share where the codec changes.
func (j *Job) MaxRows() uint64 {
	rows := uint64(0)
	for _, in := range j.Inputs {
		for _, t := range in.Tables {
			rows += t.Entries
		}
	}
	if share := 2 * float64(j.TargetFileBytes) / float64(max(j.Bytes(), 1)); share < 1 {
		return uint64(float64(rows) * share)
	}
	return rows
}

// joinBytes returns how many bytes of the source level a job takes in because they cost little.
func (p *picker) joinBytes() int64 {
	if most := joinFiles * p.in.TargetFileBytes; p.in.Room == 0 || p.in.Room > 2*most {
		return most
	}
	return 0 // what fits without them might not
}

// grandparentFiles bounds, in tables, what one output should overlap below it,
// and joinFiles what a job may take in because it costs little.
const (
	grandparentFiles = 25
	joinFiles        = 16
)

// Pick returns the job that is most worth doing, or false if nothing is due, or there is no Room for
// it. It is a pure function; the version is not changed.
func Pick(v *manifest.Version, in Inputs) (Job, bool) {
	p := newPicker(v, in)
	if job, ok := p.urgent(); ok {
		return job, true
	}
	if in.Idle {
		return p.idle()
	}
	return Job{}, false
}

// picker is one decision being made.
type picker struct {
	v  *manifest.Version
	in Inputs
	levels
}

func newPicker(v *manifest.Version, in Inputs) *picker {
	in.L0Trigger = cmp.Or(in.L0Trigger, DefaultL0Trigger)
	in.MaxRuns = cmp.Or(in.MaxRuns, DefaultMaxRuns)
	in.Multiplier = max(cmp.Or(in.Multiplier, DefaultMultiplier), 2)
	in.BaseBytes = max(cmp.Or(in.BaseBytes, DefaultBaseBytes), 1)
	in.TargetFileBytes = max(cmp.Or(in.TargetFileBytes, DefaultTargetFileBytes), 1)
	return &picker{v: v, in: in, levels: measure(v, &in)}
}

// urgent picks what frees most for what it costs, then among what is over its trigger, the greatest score first, then
// small tables if there are many.
func (p *picker) urgent() (Job, bool) {
	if job, ok := p.pushHiding(); ok {
		return job, true
	}
	var due []int
	for level, score := range p.score {
		if score >= 1 {
			due = append(due, level)
		}
	}
	sort.SliceStable(due, func(i, j int) bool { return p.score[due[i]] > p.score[due[j]] })
	for _, level := range due {
		if job, ok := p.down(level); ok {
			job.Reason = ReasonSize
			if level == 0 {
				job.Reason = ReasonRuns
			}
			return job, true
		}
	}
	return p.joinMany()
}

// down picks what is best merged from a level into the next.
func (p *picker) down(level int) (Job, bool) {
	if level > 0 {
		return p.cheapest(level, nil)
	}
	if job, ok := p.intoBase(nil); ok && !p.tooSmall(&job) {
		return job, true
	}
	if job, ok := p.joinRuns(); ok {
		return job, true
	}
	if job, ok := p.intoBase(nil); ok {
		return job, true
	}
	return p.joinSome()
}

// cheapest picks the table of a level 1..5 whose merge rewrites the least for what
// it moves and frees; want, if not nil, restricts the choice.
func (p *picker) cheapest(level int, want func(*base.TableMeta) bool) (Job, bool) {
	out := p.next[level]
	var best Job
	bestCost := 0.0
	for i, t := range p.v.Levels[level] {
		if want != nil && !want(t) {
			continue
		}
		from, to := under(p.v.Levels[out], boundsOf(t))
		below := p.v.Levels[out][from:to]
		cost := float64(t.Size+totalBytes(below)) / (float64(t.Size) * (1 + tombstoneRatio(t)))
		if best.Inputs != nil && cost >= bestCost {
			continue
		}
		job := p.job(level, p.grow(level, i, from, to), out)
		if p.fits(&job) {
			best, bestCost = job, cost
		}
	}
	return best, best.Inputs != nil
}

// tombstoneRatio is the share of tombstones in a table, 0 to 1. A range tombstone
// counts as much as all rows.
func tombstoneRatio(t *base.TableMeta) float64 {
	if t.RangeDeletes > 0 {
		return 1
	}
	return float64(t.Deletes) / float64(max(t.Entries, 1))
}

// grow returns the tables of a level that can join the i-th one without any table
// of the out level but [from, to) coming in, up to a limit in bytes.
func (p *picker) grow(level, i, from, to int) []*base.TableMeta {
	tables, out := p.v.Levels[level], p.v.Levels[p.next[level]]
	lo, hi, room := i, i+1, p.joinBytes()-tables[i].Size
	fits := func(t *base.TableMeta) bool {
		f, u := under(out, boundsOf(t))
		if t.Size > room || f < from || u > to || p.in.Unreadable[t.Num] {
			return false
		}
		room -= t.Size
		return true
	}
	for lo > 0 && fits(tables[lo-1]) {
		lo--
	}
	for hi < len(tables) && fits(tables[hi]) {
		hi++
	}
	return tables[lo:hi:hi]
}

// job completes a job: the tables of the out level under the source, whether it is
// a move, and what lies below.
func (p *picker) job(level int, source []*base.TableMeta, out int) Job {
	j := Job{
		Inputs: []Input{{level, source}}, OutLevel: out,
		TargetFileBytes: p.in.TargetFileBytes, GrandparentBytes: grandparentFiles * p.in.TargetFileBytes,
		hull: hullOf(source),
	}
	var below []*base.TableMeta
	if out != level {
		from, to := under(p.v.Levels[out], j.hull)
		below = p.v.Levels[out][from:to:to]
	}
	if len(below) > 0 {
		j.Inputs = append(j.Inputs, Input{out, below})
		j.hull = j.hull.union(hullOf(below))
	}
	for deeper := out + 1; deeper < manifest.NumLevels && len(j.Grandparents) == 0; deeper++ {
		from, to := under(p.v.Levels[deeper], j.hull)
		j.Grandparents = p.v.Levels[deeper][from:to:to]
	}
	j.Bottommost = len(j.Grandparents) == 0
	j.Move = len(below) == 0 && level != out && p.movable(&j)
	return j
}

// movable reports whether the source tables of a job that meets nothing in its out
// level may go there as they are.
func (p *picker) movable(j *Job) bool {
	source := j.Inputs[0].Tables
	if p.in.Codecs && j.OutLevel == manifest.Bottom || totalBytes(j.Grandparents) > int64(len(source))*j.GrandparentBytes {
		return false
	}
	for i, t := range source {
		useless := t.Deletes > 0 || p.droppable(t) // of deletes a merge leaves only what hides something
		if i > 0 && !source[i-1].EndsBefore(t.Smallest) || j.Bottommost && useless {
			return false
		}
	}
	return true
}

// droppable reports whether a bottommost merge rids table t of all its tombstones.
func (p *picker) droppable(t *base.TableMeta) bool {
	return t.Deletes+t.RangeDeletes > 0 && t.MaxSeq <= p.in.oldest()
}

// fits reports whether a job can be done: what it reads can be read, and there is room for what it writes.
func (p *picker) fits(j *Job) bool {
	if j.Move {
		return true
	}
	for _, in := range j.Inputs {
		if !p.readable(in.Tables) {
			return false
		}
	}
	return p.in.Room == 0 || j.Bytes() <= p.in.Room
}

// readable reports whether all of some tables may be read.
func (p *picker) readable(tables []*base.TableMeta) bool {
	return len(p.in.Unreadable) == 0 || !slices.ContainsFunc(tables, func(t *base.TableMeta) bool { return p.in.Unreadable[t.Num] })
}

// bounds is a range of keys; open means that high does not belong to it.
type bounds struct {
	low, high []byte
	open      bool
}

func boundsOf(t *base.TableMeta) bounds { return bounds{t.Smallest, t.Largest, t.LargestExclusive} }

func hullOf(tables []*base.TableMeta) bounds {
	b := boundsOf(tables[0])
	for _, t := range tables[1:] {
		b = b.union(boundsOf(t))
	}
	return b
}

func (b bounds) union(o bounds) bounds {
	if bytes.Compare(o.low, b.low) < 0 {
		b.low = o.low
	}
	if c := bytes.Compare(o.high, b.high); c > 0 || c == 0 && b.open {
		b.high, b.open = o.high, o.open
	}
	return b
}

// before reports whether every key of b is smaller than key.
func (b bounds) before(key []byte) bool {
	c := bytes.Compare(b.high, key)
	return c < 0 || c == 0 && b.open
}

// under returns the index range of the tables, sorted and free of overlap, that meet b.
func under(tables []*base.TableMeta, b bounds) (from, to int) {
	from = sort.Search(len(tables), func(i int) bool { return !tables[i].EndsBefore(b.low) })
	n := sort.Search(len(tables)-from, func(i int) bool { return b.before(tables[from+i].Smallest) })
	return from, from + n
}

func totalBytes(tables []*base.TableMeta) (n int64) {
	for _, t := range tables {
		n += t.Size
	}
	return n
}
