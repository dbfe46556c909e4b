package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// Params are the parameters of one cell.
type Params struct {
	Workload   string `json:"workload"`
	Variant    string `json:"variant"`
	N          int    `json:"n"`
	ValueBytes int    `json:"value_bytes"`
	Sync       bool   `json:"sync"`
	Seed       uint64 `json:"seed"`

	// Of some workloads only; zero where they do not apply.
	KeyBytes   int     `json:"key_bytes,omitempty"`
	Goroutines int     `json:"goroutines,omitempty"`
	Processes  int     `json:"processes,omitempty"`
	Memory     int64   `json:"memory,omitempty"`  // bytes each engine is allowed
	Seconds    float64 `json:"seconds,omitempty"` // of a timed workload
	Dist       string  `json:"dist,omitempty"`    // of keys: sequential, uniform, zipf, latest
	Detail     string  `json:"detail,omitempty"`  // what tells cells of one workload apart otherwise
}

// ID names the cell in tables and benchmark names.
func (p Params) ID() string {
	id := fmt.Sprintf("%s/%s/n=%d/v=%d/%s", p.Workload, p.Variant, p.N, p.ValueBytes, SyncLabel(p.Sync))
	if p.Goroutines > 0 {
		id += fmt.Sprintf("/g=%d", p.Goroutines)
	}
	if p.Detail != "" {
		id += "/" + p.Detail
	}
	return id
}

// DataBytes is the size of the set: every key and every value once.
func (p Params) DataBytes() int64 { return int64(p.N) * int64(data.KeyBytes+p.ValueBytes) }

// SyncLabel returns "sync=on" or "sync=off".
func SyncLabel(sync bool) string {
	if sync {
		return "sync=on"
	}
	return "sync=off"
}

// Scale chooses the parameters of a suite. Zero values leave a workload's own.
type Scale struct {
	Full       bool
	N          int // in place of the suite's counts
	ValueBytes int // in place of the workload's size
	Sync       []bool
	Seed       uint64
}

// Workload is what is done to every engine.
type Workload struct {
	Name       string
	Title      string
	QuickN     []int
	FullN      []int // in addition, with Scale.Full
	ValueBytes int
	Variant    string
	Conditions func(p Params) []string
	Columns    []result.Column
	// Estimate guesses how long a cell takes, given the delay of one sync.
	Estimate func(p Params, e engine.Info, syncDelay time.Duration) time.Duration
	Run      func(rec *Recorder, d engine.Driver, dir string, p Params) error

	Processes  bool // several processes do the work: the columns in Common would say nothing
	WritesOnly bool // reads nothing while it measures: floors can do it

	Commits []CommitKind            // of which its durability is verified; nil: puts, deletes and batches
	Vary    func(p Params) []Params // the cells made of one count and sync mode; nil: that one
}

// Cells returns the parameters a scale asks for.
func (w Workload) Cells(s Scale) []Params {
	counts := w.QuickN
	if s.Full {
		counts = append(append([]int{}, counts...), w.FullN...)
	}
	if s.N > 0 {
		counts = []int{s.N}
	}
	size := w.ValueBytes
	if s.ValueBytes > 0 {
		size = s.ValueBytes
	}
	var cells []Params
	for _, n := range counts {
		for _, sync := range s.Sync {
			p := Params{Workload: w.Name, Variant: w.Variant, N: n, ValueBytes: size, Sync: sync, Seed: s.Seed}
			if w.Vary == nil {
				cells = append(cells, p)
				continue
			}
			cells = append(cells, w.Vary(p)...)
		}
	}
	return cells
}

// Common are the columns every workload has, by Recorder.Begin and End.
var Common = []result.Column{
	{Key: result.PeakRSS, Title: "peak RSS", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: result.CPU, Title: "CPU", Group: "space", Unit: result.Nanos, Ranked: true},
}

var workloads []Workload

// Register adds a workload; each workload's file does so in its init function.
func Register(w Workload) { workloads = append(workloads, w) }

// All returns the workloads.
func All() []Workload { return workloads }

// Find returns the workload of a name.
func Find(name string) (Workload, error) {
	var names []string
	for _, w := range workloads {
		if w.Name == name {
			return w, nil
		}
		names = append(names, w.Name)
	}
	return Workload{}, fmt.Errorf("no workload %q; there are %s", name, strings.Join(names, ", "))
}

// Choose returns the named workloads; no names means all.
func Choose(names []string) ([]Workload, error) {
	if len(names) == 0 {
		return All(), nil
	}
	var chosen []Workload
	for _, name := range names {
		w, err := Find(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, w)
	}
	return chosen, nil
}
