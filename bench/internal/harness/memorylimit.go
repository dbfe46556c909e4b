package harness

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// boundedPatience is the most a cell may take whose memory the kernel bounds: an engine
// may then wait for the disk with every write, and nobody can say how long that takes.
const boundedPatience = 10 * time.Minute

// bounded runs a child, in a memory cgroup of its own if its cell has a bound on
// memory and the machine lets this process make one.
func (r *runner) bounded(ctx context.Context, o order, limit time.Duration) (outcome, error) {
	if o.Params.Memory == 0 {
		return spawn(ctx, o, limit, launch{})
	}
	group, why := newMemoryGroup("/proc", o.Params.Memory)
	if why != nil {
		out, err := spawn(ctx, o, limit, launch{})
		out.unbounded("the kernel did not enforce the memory allowed, so the page cache was not bounded: " + why.Error())
		return out, err
	}
	defer group.remove()
	out, err := spawn(ctx, o, min(limit, boundedPatience), launch{started: func(p *os.Process) {
		if p != nil {
			why = group.add(p.Pid)
		}
	}})
	switch {
	case err != nil:
		return out, err
	case why != nil:
		out.unbounded("the kernel did not enforce the memory allowed: " + why.Error())
		return out, nil
	case out.Status != result.OK && group.killed():
		return overLimit(o.Params, fmt.Sprintf("killed by the kernel: needs more than the %d MiB it is allowed", o.Params.Memory>>20)), nil
	}
	out.Notes = append(out.Notes, "the kernel enforced the memory allowed, page cache included ("+group.title+")")
	return tooSlow(out, o.Params, limit), nil
}

// unbounded notes why the kernel bounded nothing. What was read from the device is no figure
// then: it is what the page cache happened not to hold.
func (o *outcome) unbounded(why string) {
	o.Notes = append(o.Notes, why)
	if _, counted := o.Metrics[workload.ReadColumn]; counted {
		delete(o.Metrics, workload.ReadColumn)
		if o.NA == nil {
			o.NA = map[string]string{}
		}
		o.NA[workload.ReadColumn] = "the page cache was not bounded, and held what it could"
	}
}

// tooSlow turns the outcome of a cell that the kernel bounded, and that took longer than
// boundedPatience, into no figure. If a shorter limit was asked for, it hangs as any other.
func tooSlow(out outcome, p workload.Params, limit time.Duration) outcome {
	if out.Status != result.Hung || limit < boundedPatience {
		return out
	}
	return overLimit(p, fmt.Sprintf("not done after %s with the %d MiB it is allowed", boundedPatience, p.Memory>>20))
}

// overLimit is the outcome of an engine that needs more than it is allowed: no
// figure, and no fault either.
func overLimit(p workload.Params, why string) outcome {
	out := outcome{Status: result.OK, Metrics: map[string]float64{}, NA: map[string]string{}}
	w, err := workload.Find(p.Workload)
	if err != nil {
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	for _, c := range w.AllColumns() {
		out.NA[c.Key] = why
	}
	return out
}
