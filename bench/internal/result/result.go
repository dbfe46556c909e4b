package result

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Schema names the shape of the JSON.
const Schema = "cairn-bench/1"

// Run is one run of the laboratory.
type Run struct {
	Schema    string        `json:"schema"`
	Command   []string      `json:"command"`
	Build     string        `json:"build,omitempty"` // of the program: begins the SHA-256 of its file
	Started   time.Time     `json:"started"`
	Continued []time.Time   `json:"continued,omitempty"` // when the later parts of it began, if it was made in parts
	Elapsed   time.Duration `json:"elapsed_ns"`          // of all parts
	Settled   bool          `json:"settled"`             // dirty pages were written back between cells
	Rounds    int           `json:"rounds"`              // of the cell that has most; fewer if Stopped says so
	Stopped   string        `json:"stopped,omitempty"`
	Machine   Machine       `json:"machine"`
	Data      Data          `json:"data"`
	Engines   []Engine      `json:"engines"`
	Workloads []Workload    `json:"workloads"`
	Cells     []Cell        `json:"cells"`
	Whole     int           `json:"cells_of_whole_turns"` // so many at the front are of turns in which every engine had its go

	Durability []Durability `json:"durability,omitempty"` // what counting system calls showed
}

// Machine is where the run took place.
type Machine struct {
	OS          string        `json:"os"`
	Arch        string        `json:"arch"`
	Kernel      string        `json:"kernel,omitempty"`
	CPU         string        `json:"cpu,omitempty"`
	Cores       int           `json:"cores"`
	MemoryBytes int64         `json:"memory_bytes,omitempty"` // what the process may use: the smaller of machine and cgroup
	Load        string        `json:"load,omitempty"`         // load averages when the run began
	Go          string        `json:"go"`
	Environment []string      `json:"environment,omitempty"` // GOGC and the like, where set
	Filesystem  string        `json:"filesystem,omitempty"`
	ReadAhead   string        `json:"read_ahead,omitempty"` // how far the kernel reads ahead on its device
	SyncDelay   time.Duration `json:"sync_delay_ns"`        // median of a 4 KiB write and fsync
	Volatile    bool          `json:"volatile"`             // the file system is memory: syncs cost nothing and keep nothing
}

// Data is what the engines were fed.
type Data struct {
	Seed      uint64  `json:"seed"`
	PoolBytes int     `json:"pool_bytes"`
	Snappy4K  float64 `json:"snappy_4k"`
	Snappy32K float64 `json:"snappy_32k"`

	// Of the user's records, where they took the place of the pool.
	File     string `json:"file,omitempty"` // its name without directories
	Records  int    `json:"records,omitempty"`
	Skipped  int    `json:"skipped,omitempty"`   // malformed
	KeyField string `json:"key_field,omitempty"` // empty: the keys are made
}

// Engine is one row.
type Engine struct {
	Name     string            `json:"name"`
	Title    string            `json:"title"`
	Module   string            `json:"module,omitempty"`
	Version  string            `json:"version,omitempty"`
	Floor    bool              `json:"floor,omitempty"`
	Absent   string            `json:"absent,omitempty"`
	Cannot   map[string]string `json:"cannot,omitempty"`
	Settings []Setting         `json:"settings,omitempty"`

	LosesAtKill  string `json:"loses_at_kill,omitempty"` // with sync off: why a process kill takes acknowledged commits
	KeepsBatches bool   `json:"keeps_batches,omitempty"` // but no batches
}

// Setting is one departure from an engine's defaults.
type Setting struct {
	When   string `json:"when,omitempty"` // "sync=on" or "sync=off", the tables with a bound of memory, "no bound of memory"; empty: always
	Option string `json:"option"`
	Reason string `json:"reason"`
}

// Workload is one table: a workload with its parameters.
type Workload struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Variant    string   `json:"variant"`
	Title      string   `json:"title"`
	N          int      `json:"n"`
	ValueBytes int      `json:"value_bytes"`
	DataBytes  int64    `json:"data_bytes"` // keys and values of the set, once
	Snappy     float64  `json:"snappy"`     // of the values by themselves
	Sync       bool     `json:"sync"`
	Batches    bool     `json:"batches,omitempty"` // are all that is committed
	Conditions []string `json:"conditions"`
	Columns    []Column `json:"columns"`
	Chosen     bool     `json:"chosen,omitempty"` // these columns were asked for, ranked or not
}

// Column is one figure of a workload.
type Column struct {
	Key    string `json:"key"`
	Title  string `json:"title"`
	Group  string `json:"group"` // columns of a group share a table
	Unit   Unit   `json:"unit"`
	Ranked bool   `json:"ranked"`           // less is better and the best is marked
	Writes bool   `json:"writes,omitempty"` // the time of commits, or mostly
	Open   bool   `json:"open,omitempty"`   // a size taken while the store was open
}

// Unit is what a metric counts.
type Unit string

// Units of metrics.
const (
	NanosPerOp  Unit = "ns/op"
	Nanos       Unit = "ns"
	Bytes       Unit = "bytes"
	BytesPerOp  Unit = "B/op"
	AllocsPerOp Unit = "allocs/op"
	PerSecond   Unit = "1/s" // more is better: such columns are not ranked
	Number      Unit = "count"
)

// Least is the figure below which differences mean nothing: whatever is less is as good.
// A hundredth of an allocation, or a byte, per operation is what the runtime does in the
// background, and counts as none; Go's own benchmarks round to whole ones.
func (u Unit) Least() float64 {
	switch u {
	case AllocsPerOp:
		return 0.01
	case BytesPerOp:
		return 1
	}
	return 0
}

// Ratio is a figure divided by another, both of this unit: 1 if neither means anything.
func (u Unit) Ratio(a, b float64) float64 {
	if a, b = max(a, u.Least()), max(b, u.Least()); a != b {
		return a / b
	}
	return 1
}

// Metrics that every workload has.
const (
	PeakRSS   = "peak_rss"   // greatest resident size of the process
	CPU       = "cpu"        // user and system time since the engine was opened
	Written   = "written"    // bytes the device has written since then, with what was dirty at the end
	RSSBefore = "rss_before" // resident size before the engine was opened; not a column
)

// Status is how a cell ended.
type Status string

// How cells end. Void means that the engine gave a wrong answer.
const (
	OK      Status = "ok"
	Void    Status = "void"
	Failed  Status = "failed"
	Crashed Status = "crashed"
	Hung    Status = "hung"
	Absent  Status = "absent"
)

// Worse orders statuses.
func (s Status) Worse(than Status) bool {
	return slices.Index(worstFirst, s) < slices.Index(worstFirst, than)
}

var worstFirst = []Status{Void, Crashed, Hung, Failed, Absent, OK} // before them what is none of these

// Bad reports whether the status is one that fails the run.
func (s Status) Bad() bool { return s != OK && s != Absent }

// Cell is one child process: an engine, a workload, a round.
type Cell struct {
	Workload string             `json:"workload"`
	Engine   string             `json:"engine"`
	Round    int                `json:"round"` // from 1
	Place    int                `json:"place"` // in the round's order, from 1
	Status   Status             `json:"status"`
	Reason   string             `json:"reason,omitempty"`
	Metrics  map[string]float64 `json:"metrics,omitempty"`
	NA       map[string]string  `json:"na,omitempty"` // column: why it has no figure
	Notes    []string           `json:"notes,omitempty"`
	Elapsed  time.Duration      `json:"elapsed_ns"`
	Weather  *Weather           `json:"weather,omitempty"`

	Durability *CellDurability    `json:"durability,omitempty"`
	Latency    map[string]float64 `json:"latency,omitempty"` // percentile, as in "put p99.9": ns
	Series     []Second           `json:"series,omitempty"`  // over time
}

// Weather is what the machine was like, whatever the engine of a cell did.
type Weather struct {
	Stolen float64       `json:"stolen"`  // part of the processors' time that the host gave to others during the cell
	Sync   time.Duration `json:"sync_ns"` // an append of 4 KiB with fsync, right before: the median of some
}

// Undisturbed is about how long the cell would have taken had the host given no processors'
// time to others.
func (c Cell) Undisturbed() time.Duration {
	if c.Weather == nil {
		return c.Elapsed
	}
	return time.Duration(float64(c.Elapsed) * (1 - c.Weather.Stolen))
}

// Encode writes the run as indented JSON.
func (r *Run) Encode(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// Decode reads what Encode wrote, and nothing behind it.
func Decode(rd io.Reader) (*Run, error) {
	var r Run
	in := json.NewDecoder(rd)
	if err := in.Decode(&r); err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	if _, err := in.Token(); err != io.EOF {
		return nil, fmt.Errorf("reading a result: more than one, or something else behind it, at offset %d", in.InputOffset())
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("reading a result: schema %q, want %q", r.Schema, Schema)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	return &r, nil
}

// Bad returns the cells that fail the run.
func (r *Run) Bad() []Cell {
	var bad []Cell
	for _, c := range r.Cells {
		if c.Status.Bad() {
			bad = append(bad, c)
		}
	}
	return bad
}
