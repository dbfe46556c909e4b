package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/cairndb/cairn/bench/internal/syncs"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// probeLimit is the time after which a probe counts as hung.
const probeLimit = time.Minute

// verify counts, before anything is timed, the sync calls of every engine in every
// mode of the plan.
func (r *runner) verify(ctx context.Context) error {
	for _, p := range r.plan.probes() {
		r.cfg.Progress.verifying(p)
		seen, err := r.probe(ctx, p.driver, p.sync)
		if err != nil {
			return err
		}
		r.cfg.Progress.verified(p)
		r.run.Durability = append(r.run.Durability, seen...)
	}
	return nil
}

// probing is one run under the tracer to be.
type probing struct {
	driver engine.Driver
	sync   bool
}

// estimate guesses how long it takes: the tracer holds every sync back.
func (p probing) estimate(syncDelay time.Duration) time.Duration {
	return workload.CommitsTime(p.driver.Info, p.sync, probeCommits, syncDelay+syncs.Hold)
}

// probes lists what verify does.
func (p *Plan) probes() []probing {
	var all []probing
	for _, d := range p.Engines {
		if d.Info.Absent != "" || !d.Info.Can(engine.CanSync) || !d.Info.Can(engine.CanDisk) {
			continue
		}
		for _, sync := range p.syncModes() {
			all = append(all, probing{d, sync})
		}
	}
	return all
}

func (p *Plan) syncModes() []bool {
	var modes []bool
	for _, t := range p.Tables {
		if !slices.Contains(modes, t.Params.Sync) {
			modes = append(modes, t.Params.Sync)
		}
	}
	return modes
}

// probe runs an engine under the tracer once. The error is about the harness.
func (r *runner) probe(ctx context.Context, d engine.Driver, sync bool) ([]result.Durability, error) {
	dir, err := r.storeDir()
	if err != nil {
		return nil, err
	}
	defer scratch.Remove(dir)
	var tracer *syncs.Tracer
	var why error
	watched := launch{
		prepare: func(cmd *exec.Cmd) { tracer, why = syncs.Trace(cmd, dir) },
		started: func(*os.Process) {
			if why == nil {
				tracer.Started()
			}
		},
	}
	o := order{Engine: d.Info.Name, Params: workload.Params{Sync: sync}, Root: r.root, Dir: dir, Probe: true}
	limit := probeLimit
	if r.plan.Limit > 0 {
		limit = min(limit, r.plan.Limit)
	}
	out, err := spawn(ctx, o, limit, watched)
	if err != nil {
		return nil, err
	}
	if why != nil {
		return classify(d, sync, syncs.Report{}, why), nil
	}
	seen, why := tracer.Wait()
	if why == nil && out.Status != result.OK {
		why = fmt.Errorf("the run that was to be counted ended otherwise: %s: %s", out.Status, out.Reason)
	}
	return classify(d, sync, seen, why), nil
}

// classify turns counts into classes; why is what kept from counting.
func classify(d engine.Driver, sync bool, seen syncs.Report, why error) []result.Durability {
	var all []result.Durability
	for i, kind := range workload.CommitKinds {
		count, made := seen.Kinds[syncs.Kind(i)]
		c := result.Durability{Engine: d.Info.Name, Sync: sync, Kind: string(kind)}
		switch {
		case why != nil:
			c.Class, c.Why = result.NotCounted, why.Error()
		case !made:
			continue
		default:
			c.Commits, c.Durable, c.Syncs = count.Commits, count.Durable, count.Syncs
			c.Class, c.Calls = classOf(count), seen.Calls
			if c.Class.Worse(result.Grouped) && seen.Ring {
				c.Class, c.Why = result.NotCounted, errRing.Error()
			}
		}
		all = append(all, c)
	}
	return all
}

var errRing = errors.New("the engine set up asynchronous I/O (io_uring or io_submit), whose syncs are no system calls")

func classOf(c syncs.Count) result.Class {
	switch {
	case c.Durable == 0:
		return result.NoCommit
	case c.Durable < c.Commits:
		return result.SomeCommits
	case c.Syncs < c.Commits:
		return result.Grouped
	}
	return result.EveryCommit
}

// durability sums up what is known of the commits a cell is made of.
func (r *runner) durability(c cell) *result.CellDurability {
	kinds := c.Workload.KindsFor(c.driver.Info)
	var of []result.Durability
	for _, d := range r.run.Durability {
		if d.Engine == c.driver.Info.Name && d.Sync == c.Params.Sync && slices.Contains(kinds, workload.CommitKind(d.Kind)) {
			of = append(of, d)
		}
	}
	return result.Sum(of)
}
