package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// bounded runs a child, in a memory cgroup of its own if its cell has a bound on
// memory and the machine lets this process make one.
func (r *runner) bounded(ctx context.Context, o order, limit time.Duration) (outcome, error) {
	if o.Params.Memory == 0 {
		return spawn(ctx, o, limit, launch{})
	}
	group, why := newMemoryGroup("/proc/self", fmt.Sprintf("cairn-bench-%d", os.Getpid()), o.Params.Memory)
	if why != nil {
		out, err := spawn(ctx, o, limit, launch{})
		out.Notes = append(out.Notes, "the kernel did not enforce the memory allowed, so the page cache was not bounded: "+why.Error())
		return out, err
	}
	defer group.remove()
	out, err := spawn(ctx, o, limit, launch{started: func(p *os.Process) {
		if p != nil {
			why = group.add(p.Pid)
		}
	}})
	switch {
	case err != nil:
		return out, err
	case why != nil:
		out.Notes = append(out.Notes, "the kernel did not enforce the memory allowed: "+why.Error())
	case out.Status != result.OK && group.killed():
		return overLimit(o.Params), nil
	default:
		out.Notes = append(out.Notes, "the kernel enforced the memory allowed, page cache included (cgroup)")
	}
	return out, nil
}

// overLimit is the outcome of an engine that needs more than it is allowed: no
// figure, and no fault either.
func overLimit(p workload.Params) outcome {
	out := outcome{Status: result.OK, Metrics: map[string]float64{}, NA: map[string]string{}}
	w, err := workload.Find(p.Workload)
	if err != nil {
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	for _, c := range append(w.Columns, workload.Common...) {
		out.NA[c.Key] = fmt.Sprintf("killed by the kernel: needs more than the %d MiB it is allowed", p.Memory>>20)
	}
	return out
}

// memoryGroup is a cgroup (version 2) with a limit.
type memoryGroup struct{ dir string }

// newMemoryGroup makes a group below the one this process is in, or beside it.
// process is /proc/self.
func newMemoryGroup(process, name string, limit int64) (*memoryGroup, error) {
	mount, own, err := ownGroup(process)
	if err != nil {
		return nil, err
	}
	parents := []string{own}
	if own != mount {
		parents = append(parents, filepath.Dir(own))
	}
	var why error
	for _, parent := range parents {
		g := &memoryGroup{filepath.Join(parent, name)}
		if err = memoryDelegated(parent); err == nil {
			if err = g.create(limit); err == nil {
				return g, nil
			}
			_ = os.Remove(g.dir)
		}
		if why == nil {
			why = err
		}
	}
	return nil, why
}

func memoryDelegated(parent string) error {
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(controllers)), "memory") {
		return errors.New("this cgroup (version 2) has no memory controller")
	}
	// Refused where the group has processes; then the next one up is tried.
	return os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory"), 0o644)
}

func (g *memoryGroup) create(limit int64) error {
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	_ = os.WriteFile(filepath.Join(g.dir, "memory.swap.max"), []byte("0"), 0o644) // absent where there is no swap
	return os.WriteFile(filepath.Join(g.dir, "memory.max"), []byte(strconv.FormatInt(limit, 10)), 0o644)
}

func (g *memoryGroup) add(pid int) error {
	return os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
}

// killed reports whether the kernel killed a process for want of memory.
func (g *memoryGroup) killed() bool {
	events, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(events)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return n != "0"
		}
	}
	return false
}

// remove waits for the kernel to have taken the last process out.
func (g *memoryGroup) remove() {
	for range 100 {
		if err := os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// ownGroup finds where cgroups (version 2) are mounted, and the directory of the one
// a process is in.
func ownGroup(process string) (mount, own string, err error) {
	mount, err = fieldOfLine(filepath.Join(process, "mountinfo"), func(line string) (string, bool) {
		before, after, ok := strings.Cut(line, " - ")
		if fields := strings.Fields(before); ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4], true
		}
		return "", false
	})
	if err != nil {
		return "", "", errors.New("no cgroup version 2 is mounted")
	}
	path, err := fieldOfLine(filepath.Join(process, "cgroup"), func(line string) (string, bool) { return strings.CutPrefix(line, "0::") })
	if err != nil {
		return "", "", errors.New("this process is in no cgroup version 2")
	}
	return mount, filepath.Join(mount, path), nil
}

func fieldOfLine(file string, find func(string) (string, bool)) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if field, ok := find(lines.Text()); ok {
			return field, nil
		}
	}
	return "", os.ErrNotExist
}
