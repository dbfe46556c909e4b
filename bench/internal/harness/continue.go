package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// A run is saved as it goes, after whole tables, and can be gone on with from there: by the same
// program, on the same machine, with the same plan. A table's round that was under way
// is done again from its first engine, so that its cells are of one time.

// takeUp moves what an earlier part has measured, and under which conditions, into run, which is
// of the same plan.
func takeUp(run, before *result.Run) error {
	if err := sameRun(before, run); err != nil {
		return err
	}
	run.Whole = min(max(before.Whole, 0), len(before.Cells))
	run.Cells = before.Cells[:run.Whole]
	run.Started, run.Continued, run.Elapsed = before.Started, before.Continued, before.Elapsed
	run.Machine, run.Durability = before.Machine, before.Durability
	return nil
}

// countPart makes what goes on with an earlier part a part of its own, when it has measured something.
func (r *runner) countPart() {
	c := r.run.Continued
	if r.cfg.Before != nil && (len(c) == 0 || !c[len(c)-1].Equal(r.part)) {
		r.run.Continued = append(c, r.part)
	}
}

// errOtherRun: what is to be gone on with is no part of this run.
var errOtherRun = errors.New("the run cannot be continued")

// OfAnotherRun reports whether err of Run says that Before is no part of the run.
func OfAnotherRun(err error) bool { return errors.Is(err, errOtherRun) }

// sameRun returns in what the parts of a run differ, if they do.
func sameRun(before, run *result.Run) error {
	names := func(r *result.Run) (engines, workloads []string) {
		for _, e := range r.Engines {
			engines = append(engines, strings.TrimSpace(e.Name+" "+e.Version))
		}
		for _, w := range r.Workloads {
			workloads = append(workloads, w.ID)
		}
		return engines, workloads
	}
	m, n := before.Machine, run.Machine
	d, o := before.Data, run.Data
	e, w := names(before)
	f, x := names(run)
	for _, one := range []struct {
		what    string
		was, is any
	}{
		{"the program", before.Build, run.Build},
		{"the system", m.OS + "/" + m.Arch, n.OS + "/" + n.Arch},
		{"the kernel", m.Kernel, n.Kernel},
		{"the processor", m.CPU, n.CPU},
		{"the number of cores", m.Cores, n.Cores},
		{"the memory", m.MemoryBytes, n.MemoryBytes},
		{"the file system of the data", m.Filesystem, n.Filesystem},
		{"the read-ahead of its disk", m.ReadAhead, n.ReadAhead},
		{"the environment", strings.Join(m.Environment, " "), strings.Join(n.Environment, " ")},
		{"the seed", d.Seed, o.Seed},
		{"the file of records", d.File, o.File},
		{"the field of their keys", d.KeyField, o.KeyField},
		{"the number of records", d.Records, o.Records},
		{"the number of records left out", d.Skipped, o.Skipped},
		{"the size of the data", d.PoolBytes, o.PoolBytes},
		{"the compressibility of the data", []float64{d.Snappy4K, d.Snappy32K}, []float64{o.Snappy4K, o.Snappy32K}},
		{"writing back between cells", before.Settled, run.Settled},
		{"the list of engines", strings.Join(e, ", "), strings.Join(f, ", ")},
		{"the list of workloads", strings.Join(w, ", "), strings.Join(x, ", ")},
	} {
		if a, b := fmt.Sprint(one.was), fmt.Sprint(one.is); a != b {
			return fmt.Errorf("%w: %s was %q and is %q (to begin anew, remove its file)", errOtherRun, one.what, a, b)
		}
	}
	return nil
}

// has reports whether an earlier part has done a table's turn, and learns how long its
// cells took.
func (r *runner) has(turn []cell) bool {
	found := false
	id := turn[0].Params.ID()
	for _, c := range turn {
		for _, done := range r.run.Cells {
			if done.Workload == id && done.Engine == c.driver.Info.Name && done.Round == c.round {
				r.took[c.table][c.engine], found = done.Elapsed, true
			}
		}
	}
	return found
}

// saveEvery is the least time between two savings.
const saveEvery = 10 * time.Second

// save hands what there is to whoever keeps it, now and then. If that fails it is tried
// again the next time: what is being measured is worth more than its place.
func (r *runner) save(table, round int) {
	if r.cfg.Save == nil || time.Since(r.saved) < saveEvery {
		return
	}
	r.saved = time.Now()
	now := *r.run
	now.Elapsed = time.Since(r.started)
	now.Stopped = fmt.Sprintf("what was done up to round %d of %s", round, r.plan.Tables[table].Params.ID())
	why := ""
	if err := r.cfg.Save(&now); err != nil {
		why = err.Error()
	}
	if why != r.unsaved {
		r.unsaved = why
		r.cfg.Progress.saving(why)
	}
}

// build names the program by its bytes.
func build() string {
	name, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
