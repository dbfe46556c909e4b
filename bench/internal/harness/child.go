package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/peer"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/cairndb/cairn/bench/internal/syncs"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// childMark in the environment makes the program a child. Its value is the directory of
// the run: by it all processes are known that a child has started, whatever group or
// session they made for themselves.
const childMark = "CAIRN_BENCH_CHILD"

// order is what the child is told.
type order struct {
	Engine string          `json:"engine"`
	Params workload.Params `json:"params"`
	Root   string          `json:"root"`            // removed if the harness is gone
	Dir    string          `json:"dir"`             // of the store, within Root
	Probe  bool            `json:"probe,omitempty"` // only make a few commits, to be counted
}

// outcome is what the child answers.
type outcome struct {
	Status  result.Status      `json:"status"`
	Reason  string             `json:"reason,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
	NA      map[string]string  `json:"na,omitempty"`
	Notes   []string           `json:"notes,omitempty"`
	Latency map[string]float64 `json:"latency,omitempty"`
	Series  []result.Second    `json:"series,omitempty"`
}

// IsChild reports whether this process was started to run one cell. If so main
// calls Child at once and does nothing else.
func IsChild() bool { return os.Getenv(childMark) != "" }

// Child runs the cell ordered on standard input and exits.
func Child() {
	if peer.Asked() {
		peer.Main()
	}
	if err := syncs.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "cairn-bench: cannot be traced:", err)
		os.Exit(3)
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		os.Exit(3)
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		fmt.Fprintln(os.Stderr, "cairn-bench: bad order:", err)
		os.Exit(3)
	}
	orphaned := watchParent(in, o.Root)
	data.UsePools(o.Root)
	out := os.Stdout
	os.Stdout = os.Stderr // what an engine prints must not mix with the answer
	answer := runCell(o)
	leaving.Lock()
	if err := json.NewEncoder(out).Encode(answer); err != nil { // nobody reads it
		leaving.Unlock()
		orphaned()
	}
	os.Exit(0)
}

// leaving is held by the goroutine that ends the process: a cell whose processes are
// being killed because the harness is gone must not exit before the data are removed.
var leaving sync.Mutex

// watchParent ends the process, data first, when the harness is gone; so does the
// function it returns.
func watchParent(in io.Reader, root string) (orphaned func()) {
	orphaned = func() {
		leaving.Lock()
		killMarked(root)
		scratch.Remove(root)
		endGroup()
		os.Exit(4)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		orphaned()
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM) // the parent-death signal
	go func() {
		<-signals
		orphaned()
	}()
	return orphaned
}

func runCell(o order) outcome {
	d, err := engine.Find(o.Engine)
	if err != nil {
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	if o.Probe {
		return runProbe(d, o)
	}
	w, err := workload.Of(o.Params)
	if err != nil {
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	rec, err := workload.RunCell(w, d, o.Dir, o.Params)
	if err == nil && d.Info.Native {
		rec.Uncounted("it works outside the Go heap, where allocations are not counted")
	}
	return judge(rec, err)
}

func judge(rec *workload.Recorder, err error) outcome {
	var wrong *workload.WrongAnswer
	switch {
	case errors.As(err, &wrong):
		return outcome{Status: result.Void, Reason: err.Error()}
	case err != nil:
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	return outcome{Status: result.OK, Metrics: rec.Metrics, NA: rec.NA, Notes: rec.Notes, Latency: rec.Latency, Series: rec.Series}
}
