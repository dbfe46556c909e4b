package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cairndb/cairn/vfs/memfs"
)

// Counts are what an enumeration has done.
type Counts struct {
	Images int // distinct, by hash
	Holes  int // of these, with a hole before an intact frame of the log
	Reused int // of these, with a log segment whose file was used before
	Nested int // of these, crashed inside the recovery of another
	Drops  int // of these, where Open reported dropped bytes
	Points int // crash points
	Runs   int // executions of workloads
}

// Add adds other.
func (c *Counts) Add(other Counts) {
	c.Images += other.Images
	c.Holes += other.Holes
	c.Reused += other.Reused
	c.Nested += other.Nested
	c.Drops += other.Drops
	c.Points += other.Points
	c.Runs += other.Runs
}

func (c Counts) String() string {
	return fmt.Sprintf("%d distinct images at %d crash points of %d runs; %d with a hole, %d with a log file used before, %d nested, %d with a reported drop",
		c.Images, c.Points, c.Runs, c.Holes, c.Reused, c.Nested, c.Drops)
}

// Enumeration visits crash images of one workload.
type Enumeration struct {
	Workload *Workload
	Seed     uint64
	seen     map[uint64]bool
	rand     *rand.Rand
	Counts
}

// NewEnumeration prepares an enumeration.
func NewEnumeration(w *Workload, seed uint64) *Enumeration {
	return &Enumeration{Workload: w, Seed: seed, seen: map[uint64]bool{}, rand: rand.New(rand.NewPCG(seed, 1))}
}

// Failure is a crash image that broke a promise. Its message says how to get there.
type Failure struct {
	Test   string // what found it, as -run takes it
	Start  uint64 // seed of the enumeration
	Seed   uint64 // of the run
	At     int
	Choice memfs.Choice
	Outer  string // crash in recovery: what it recovered from
	Image  *memfs.FS
	Ops    []memfs.Op // the last mutations before the crash
	Err    error
}

func (f *Failure) Unwrap() error { return f.Err }

func (f *Failure) Error() string {
	s := fmt.Sprintf("%s, run seed %d%s, crash after %d mutations, choice %s: %v\nlast mutations:",
		f.Test, f.Seed, f.Outer, f.At, f.Choice, f.Err)
	for _, op := range f.Ops {
		s += "\n\t" + op.String()
	}
	return s + "\nrepeat: go test ./internal/crashtest -run '" + f.Test + "$' -crash.seed=" + fmt.Sprint(f.Start) +
		"\n(the interleaving of goroutines may differ; -crash.save=DIR keeps the image)"
}

// Run executes the workload once and visits up to limit distinct images of it.
func (e *Enumeration) Run(limit int) error {
	seed := e.Seed + uint64(e.Runs)
	e.Runs++
	r := NewRun(e.Workload, seed)
	if err := r.Do(e.Workload); err != nil {
		return fmt.Errorf("workload %s, seed %d: %w", e.Workload.Name, seed, err)
	}
	r.History.order()
	v := &visit{e: e, r: r, j: r.Disk.Journal(), seed: seed}
	return v.all(limit)
}

// visit is the enumeration of one run.
type visit struct {
	e     *Enumeration
	r     *Run
	j     *memfs.Journal
	seed  uint64
	outer string // nested: the crash that this run recovers from
}

// all spreads limit over the crash points. Half of it goes to choices about whole
// operations, as far as there are so many.
func (v *visit) all(limit int) error {
	points := v.j.Len() - v.r.From + 1
	for at := v.r.From; at <= v.j.Len() && limit > 0; at++ {
		left := v.j.Len() - at + 1
		n, err := v.point(at, (limit+left-1)/left)
		if err != nil {
			return err
		}
		limit -= n
	}
	v.e.Points += points
	return nil
}

// point visits up to about n new images of a crash after at mutations.
func (v *visit) point(at, n int) (int, error) {
	plan := memfs.Plan{EveryByte: 4096, Deep: v.e.rand.IntN(4) == 0, Random: 8, Seed: v.e.rand.Uint64()}
	choices := whole(len(v.j.Pending(at)))
	shuffle(v.e.rand, choices[2:])
	choices = choices[:min(len(choices), max(2, (n+1)/2))]
	for range min(3, n) {
		choices = append(choices, memfs.Random(v.e.rand.Uint64()))
	}
	choices = append(choices, v.j.Draw(v.e.rand, at, plan, 2*n)...)
	var written []place
	done := 0
	for _, c := range choices {
		if done >= n {
			break
		}
		image := v.j.State(at, c)
		if hash := image.Hash(); v.e.seen[hash] {
			continue
		} else {
			v.e.seen[hash] = true
		}
		if written == nil {
			written = frames(v.j.State(at, memfs.Everything()))
		}
		done++
		v.e.Images++
		if err := v.check(at, c, image, written); err != nil {
			return done, err
		}
	}
	return done, nil
}

// whole returns the choices that keep or lose whole operations.
func whole(pending int) []memfs.Choice {
	all := []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()}
	if pending == 0 {
		return all
	}
	all = append(all, memfs.Everything().EntriesLost(), memfs.SyncedOnly().EntriesKept(), memfs.SyncedOnly().Grown(), memfs.SyncedOnly().Grown().EntriesKept())
	for i := range pending {
		all = append(all, memfs.DropOne(i), memfs.KeepOne(i), memfs.KeepOne(i).EntriesKept(), memfs.DropOne(i).Grown())
	}
	return all
}

func shuffle(r *rand.Rand, c []memfs.Choice) {
	r.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] })
}

// check judges one image.
func (v *visit) check(at int, c memfs.Choice, image *memfs.FS, written []place) error {
	pristine := image
	if v.e.Images%4 != 0 {
		pristine = nil
	} else {
		pristine = image.Clone()
	}
	logs := logFiles(image)
	if hasHole(logs) {
		v.e.Holes++
	}
	if hasReused(logs) {
		v.e.Reused++
	}
	m := Moment{At: at, Complete: c == memfs.Everything()}
	x := &examination{h: v.r.History, m: m, image: image, written: written, options: v.r.options,
		silent: v.e.Workload.Failing || v.outer != "", partial: v.e.Workload.Mapped}
	if v.outer != "" {
		v.e.Nested++
	}
	err := x.run(v.e.Images%3 == 0)
	if x.found != nil && x.found.Dropped > 0 {
		v.e.Drops++
	}
	if err == nil {
		return nil
	}
	return &Failure{Test: "TestCrash/of/" + v.e.Workload.Name, Start: v.e.Seed, Seed: v.seed, At: at, Choice: c, Outer: v.outer, Image: pristine, Ops: lastOps(v.j, at), Err: err}
}

func lastOps(j *memfs.Journal, at int) []memfs.Op {
	return slices.Clone(j.Ops()[max(0, at-12):at])
}
