package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/workload"
)

// hierarchy is one of the kernel's two interfaces to cgroups. A limit set in either
// bounds the page cache too.
type hierarchy struct {
	title      string
	filesystem string // type of its mount
	limit      string // file that takes the bytes allowed
	swap       string // file that takes the bound on swap; not there without swap
	swapToo    bool   // that bound is on memory and swap together
	events     string // file with a line "oom_kill N"
}

var (
	unified = hierarchy{"cgroup version 2", "cgroup2", "memory.max", "memory.swap.max", false, "memory.events"}
	legacy  = hierarchy{"cgroup version 1", "cgroup", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", true, "memory.oom_control"}
)

// memoryGroup is a cgroup with a limit.
type memoryGroup struct {
	hierarchy
	dir string
}

// groupPrefix begins the names of groups; the id of the process that made it follows.
const groupPrefix = "cairn-bench-"

// ownBytes is what a cell needs with an engine that needs nothing: the program, the Go
// runtime, the data to write.
const ownBytes = workload.MemoryOfItsOwn

// newMemoryGroup makes a group for a cell whose engine is allowed so many bytes, below the one this process is in (version 2: or beside
// it). proc is /proc. The error says why in each version there is none.
func newMemoryGroup(proc string, allowed int64) (*memoryGroup, error) {
	var why []error
	for _, h := range []hierarchy{unified, legacy} {
		g, err := h.group(proc, allowed+ownBytes)
		if err == nil {
			return g, nil
		}
		why = append(why, fmt.Errorf("%s: %w", h.title, err))
	}
	return nil, fmt.Errorf("%w; %w", why[0], why[1])
}

func (h hierarchy) group(proc string, limit int64) (*memoryGroup, error) {
	mount, own, err := h.own(filepath.Join(proc, "self"))
	if err != nil {
		return nil, err
	}
	parents := []string{own}
	if h == unified && own != mount { // which refuses a group below one that has processes
		parents = append(parents, filepath.Dir(own))
	}
	var why error
	for _, parent := range parents {
		removeStaleGroups(proc, parent)
		g := &memoryGroup{h, filepath.Join(parent, groupPrefix+strconv.Itoa(os.Getpid()))}
		if err = h.delegated(parent); err == nil {
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

// removeStaleGroups removes the groups of harnesses that were killed: empty ones, whose
// process is gone. The kernel removes no other.
func removeStaleGroups(proc, parent string) {
	groups, _ := filepath.Glob(filepath.Join(parent, groupPrefix+"*"))
	for _, dir := range groups {
		pid := strings.TrimPrefix(filepath.Base(dir), groupPrefix)
		if _, err := os.Stat(filepath.Join(proc, pid)); errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}
}

// delegated makes sure that groups below parent can have a limit.
func (h hierarchy) delegated(parent string) error {
	if h != unified {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(controllers)), "memory") {
		return errors.New("this group has no memory controller")
	}
	// Refused where the group has processes; then the next one up is tried.
	return os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+memory"), 0o644)
}

func (g *memoryGroup) create(limit int64) error {
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return err
	}
	if err := g.set(g.limit, limit); err != nil {
		return err
	}
	swap := int64(0)
	if g.swapToo {
		swap = limit
	}
	_ = g.set(g.swap, swap) // absent where there is no swap
	return nil
}

func (g *memoryGroup) set(file string, n int64) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(strconv.FormatInt(n, 10)), 0o644)
}

func (g *memoryGroup) add(pid int) error { return g.set("cgroup.procs", int64(pid)) }

// killed reports whether the kernel killed a process for want of memory.
func (g *memoryGroup) killed() bool {
	n, err := lineOf(filepath.Join(g.dir, g.events), func(line string) (string, bool) { return strings.CutPrefix(line, "oom_kill ") })
	return err == nil && n != "0"
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

// own finds where the hierarchy with the memory controller is mounted, and the
// directory of the group a process is in.
func (h hierarchy) own(process string) (mount, own string, err error) {
	var root string // of the mount, within the hierarchy
	mount, err = lineOf(filepath.Join(process, "mountinfo"), func(line string) (string, bool) {
		before, after, _ := strings.Cut(line, " - ")
		fields, about := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(about) < 3 || about[0] != h.filesystem || h != unified && !listed(about[2], "memory") {
			return "", false
		}
		root = fields[3]
		return fields[4], true
	})
	if err != nil {
		return "", "", errors.New("not mounted with the memory controller")
	}
	path, err := lineOf(filepath.Join(process, "cgroup"), func(line string) (string, bool) {
		fields := strings.SplitN(line, ":", 3)
		return fields[len(fields)-1], len(fields) == 3 && (h == unified && fields[0] == "0" || h != unified && listed(fields[1], "memory"))
	})
	if err != nil {
		return "", "", errors.New("this process is in no group of it")
	}
	return mount, filepath.Join(mount, strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), nil
}

// listed reports whether a list with commas has a word.
func listed(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// lineOf returns what find takes from the first line of a file that it accepts.
func lineOf(file string, find func(string) (string, bool)) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if part, ok := find(lines.Text()); ok {
			return part, nil
		}
	}
	return "", os.ErrNotExist
}
