package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// Workload is what is done to every engine.
type Workload struct {
	Name     string
	Title    string
	QuickN   []int
	FullN    []int // with Scale.Full: in addition, or in place of QuickN where FullOnly
	LargeToo bool  // the quick suite has the large counts too, in the modes that Modes says
	// QuickSynced is the most keys the quick suite has with syncs; 0: what QuickN says.
	QuickSynced int
	ValueBytes  int
	Variant     string // sound, or published: as an article did it
	// Modes are the sync modes of a suite, with its large counts and without; nil: both.
	Modes func(s Scale, large bool) []bool
	// Vary makes several cells of one, as for each number of goroutines; nil: one.
	Vary func(p Params, s Scale) []Params
	// Unfit says why the workload is not run at a scale, if so; nil: at any.
	Unfit      func(s Scale) string
	Conditions func(p Params) []string
	Columns    []result.Column
	// Estimate guesses how long a cell takes, given the delay of one sync.
	Estimate func(p Params, e engine.Info, syncDelay time.Duration) time.Duration
	Run      func(rec *Recorder, d engine.Driver, dir string, p Params) error
	// Repeat is how many times one cell does the whole of Run, each time with a new store:
	// work of microseconds is too short to be timed once. nil: once.
	Repeat func(p Params) int

	Named      bool // part of no suite: run when it is named
	FullOnly   bool // not part of the quick suite, unless it is named; published variants never are
	Processes  bool // several processes do the work: the columns in Common would say nothing
	Timed      bool // each engine does what it can in a time: what it used of the machine is for more work or less, and not ranked
	Skewed     bool // chooses keys as Scale.Theta says
	WritesOnly bool // reads nothing while it measures: floors can do it

	// Article names the engines that an article measured. At its largest count only these and
	// the subject do the full suite's published variant: it is there to be compared with the
	// article, and takes as long as the sound one beside it, which every engine does.
	Article []string

	Commits []CommitKind // of which its durability is verified; nil: puts, deletes and batches
	// UnsyncedDeletes names the one engine whose deletes are not synced even with sync on.
	UnsyncedDeletes string
}

// Common are the columns every workload has, by Recorder.Begin and End.
var Common = []result.Column{
	{Key: result.PeakRSS, Title: "peak RSS", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: result.CPU, Title: "CPU", Group: "space", Unit: result.Nanos, Ranked: true},
	{Key: result.Written, Title: "written", Group: "space", Unit: result.Bytes, Ranked: true},
}

// AllColumns are those of the workload, and those that it has in common with others.
func (w *Workload) AllColumns() []result.Column {
	all := slices.Clone(w.Columns)
	if w.Processes {
		return all
	}
	for _, c := range Common {
		c.Ranked = c.Ranked && !w.Timed
		all = append(all, c)
	}
	return all
}

// tableOrder is that of the tables; workloads it does not know follow.
var tableOrder = []string{"w0", "w1", "w2", "w4", "ycsb", "load", "large", "durable", "processes", "memory", "lean", "latency", "sustained", "crash"}

var workloads []Workload

// Register adds a workload; each workload's file does so in its init function.
// Variants share a name and differ in Variant.
func Register(w Workload) {
	if _, err := Of(Params{Workload: w.Name, Variant: w.Variant}); err == nil {
		panic("workload registered twice: " + w.Name + "/" + w.Variant)
	}
	if !slices.Contains(tableOrder, w.Name) {
		tableOrder = append(tableOrder, w.Name)
	}
	workloads = append(workloads, w)
}

// All returns the workloads in the order of the tables, sound variants first.
func All() []Workload {
	all := slices.Clone(workloads)
	slices.SortStableFunc(all, func(a, b Workload) int {
		if byName := slices.Index(tableOrder, a.Name) - slices.Index(tableOrder, b.Name); byName != 0 {
			return byName
		}
		return -strings.Compare(a.Variant, b.Variant)
	})
	return all
}

// Find returns the first workload of a name, "w1" or "w1/published".
func Find(name string) (Workload, error) {
	found, err := variants(name)
	if err != nil {
		return Workload{}, err
	}
	return found[0], nil
}

// Of returns the workload of a cell.
func Of(p Params) (Workload, error) {
	for _, w := range workloads {
		if w.Name == p.Workload && w.Variant == p.Variant {
			return w, nil
		}
	}
	return Workload{}, fmt.Errorf("no workload %s/%s", p.Workload, p.Variant)
}

func variants(name string) ([]Workload, error) {
	var found []Workload
	var names []string
	for _, w := range All() {
		if w.Name == name || w.Name+"/"+w.Variant == name {
			found = append(found, w)
		}
		if !slices.Contains(names, w.Name) {
			names = append(names, w.Name)
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no workload %q; there are %s", name, strings.Join(names, ", "))
	}
	return found, nil
}

// Choose returns the named workloads with all their variants, or one variant if the
// name has it, each once; no names means all of the quick or the full suite.
func Choose(names []string, full bool) ([]Workload, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(All(), func(w Workload) bool { return w.Named || !full && (w.FullOnly || w.Variant == "published") }), nil
	}
	var chosen []Workload
	for _, name := range names {
		found, err := variants(name)
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			if !slices.ContainsFunc(chosen, w.same) {
				chosen = append(chosen, w)
			}
		}
	}
	return chosen, nil
}

func (w Workload) same(other Workload) bool {
	return w.Name == other.Name && w.Variant == other.Variant
}
