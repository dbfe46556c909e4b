package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// lay writes files, given by path and content.
func lay(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fakeGroups lays out what /proc and cgroup file systems look like to a process in
// the group /user/session, with the controllers of version 2 given and, if legacyRoot
// is not empty, version 1 mounted from that place in its hierarchy.
func fakeGroups(t *testing.T, controllers, legacyRoot string) (proc, unifiedOwn, legacyMount string) {
	t.Helper()
	proc, mount, legacyMount := t.TempDir(), t.TempDir(), t.TempDir()
	unifiedOwn = filepath.Join(mount, "user", "session")
	mounts := "22 1 0:20 / / rw - ext4 /dev/x rw\n30 22 0:26 / " + mount + " rw,nosuid shared:4 - cgroup2 cgroup2 rw\n" +
		"31 22 0:27 / /elsewhere rw - cgroup cgroup rw,cpu,cpuacct\n"
	if legacyRoot != "" {
		mounts += "32 22 0:28 " + legacyRoot + " " + legacyMount + " rw - cgroup cgroup rw,hugetlb,memory\n"
		os.MkdirAll(filepath.Join(legacyMount, "user", "session"), 0o755)
	}
	lay(t, map[string]string{
		filepath.Join(unifiedOwn, "cgroup.controllers"):               controllers,
		filepath.Join(filepath.Dir(unifiedOwn), "cgroup.controllers"): controllers,
		filepath.Join(proc, "self", "mountinfo"):                      mounts,
		filepath.Join(proc, "self", "cgroup"):                         "5:cpu,cpuacct:/else\n4:hugetlb,memory:/user/session\n0::/user/session\n",
	})
	return proc, unifiedOwn, legacyMount
}

func content(t *testing.T, elements ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func TestMemoryGroup(t *testing.T) {
	name := groupPrefix + strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		name, controllers, legacyRoot string
		limit, swap, swapBytes        string
		events                        string
	}{
		{"version 2", "cpu memory pids\n", "", "memory.max", "memory.swap.max", "0", "memory.events"},
		{"version 2 before version 1", "memory\n", "/", "memory.max", "memory.swap.max", "0", "memory.events"},
		{"version 1", "cpu pids\n", "/", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "67108864", "memory.oom_control"},
		{"version 1 of a container", "", "/user/session", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "67108864", "memory.oom_control"},
	} {
		t.Run(c.name, func(t *testing.T) {
			proc, own, legacyMount := fakeGroups(t, c.controllers, c.legacyRoot)
			switch {
			case c.legacyRoot == "/user/session":
				own = legacyMount
			case strings.HasPrefix(c.name, "version 1"):
				own = filepath.Join(legacyMount, "user", "session")
			}
			g, err := newMemoryGroup(proc, 64<<20-ownBytes)
			if err != nil || g.dir != filepath.Join(own, name) {
				t.Fatalf("%+v, %v, want it below %s", g, err, own)
			}
			if got := content(t, g.dir, c.limit); got != "67108864" {
				t.Errorf("limit %q", got)
			}
			if got := content(t, g.dir, c.swap); got != c.swapBytes {
				t.Errorf("swap %q, want %q", got, c.swapBytes)
			}
			if err := g.add(123); err != nil || content(t, g.dir, "cgroup.procs") != "123" {
				t.Error("the process is not in the group:", err)
			}
			if g.killed() {
				t.Error("nobody was killed, and there is no file of events")
			}
			lay(t, map[string]string{filepath.Join(g.dir, c.events): "low 0\noom_kill_disable 0\noom_kill 0\n"})
			if g.killed() {
				t.Error("nobody was killed")
			}
			lay(t, map[string]string{filepath.Join(g.dir, c.events): "low 0\noom_kill_disable 0\noom_kill 1\n"})
			if !g.killed() {
				t.Error("a kill is not seen")
			}
		})
	}
}

func TestVersion2GroupIsMadeBesideABusyOne(t *testing.T) {
	proc, own, _ := fakeGroups(t, "memory\n", "")
	os.Mkdir(filepath.Join(own, "cgroup.subtree_control"), 0o755) // refuses to be written
	g, err := newMemoryGroup(proc, 1)
	if err != nil || filepath.Dir(g.dir) != filepath.Dir(own) {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestGroupsOfKilledHarnessesAreRemoved(t *testing.T) {
	proc, own, _ := fakeGroups(t, "memory\n", "")
	gone, living := filepath.Join(own, groupPrefix+"7"), filepath.Join(own, groupPrefix+"8")
	for _, dir := range []string{gone, living, filepath.Join(proc, "8")} {
		os.Mkdir(dir, 0o755)
	}
	g, err := newMemoryGroup(proc, 1)
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{gone: false, living: true, g.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	if files, _ := os.ReadDir(g.dir); len(files) == 0 {
		t.Error("no limit was written")
	}
}

func TestWithoutAMemoryControllerItIsSaid(t *testing.T) {
	proc, _, _ := fakeGroups(t, "cpu pids\n", "")
	_, err := newMemoryGroup(proc, 1)
	if want := "cgroup version 2: this group has no memory controller; cgroup version 1: not mounted with the memory controller"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := newMemoryGroup(t.TempDir(), 1); err == nil {
		t.Error("a group without cgroups")
	}
}

// boundedCell runs W1 on an engine with a bound on its memory.
func boundedCell(t *testing.T, name string, limit int64, patience time.Duration) outcome {
	t.Helper()
	dir := t.TempDir()
	p := workload.Params{Workload: "w1", Variant: "sound", N: 20, ValueBytes: 64, Memory: limit}
	out, err := (&runner{}).bounded(t.Context(), order{Engine: name, Params: p, Root: dir, Dir: dir}, patience)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each row says what bounded it: the kernel, or not and why. What the kernel bounds
// cannot have more.
func TestEveryRowSaysWhatBoundedItsMemory(t *testing.T) {
	const limit = 256 << 20
	out := boundedCell(t, "good", limit, time.Minute)
	if out.Status != result.OK || len(out.Notes) == 0 {
		t.Fatalf("%+v", out)
	}
	note := out.Notes[len(out.Notes)-1]
	t.Log(note)
	slow := boundedCell(t, "hangs", limit, time.Second)
	glutton := boundedCell(t, "glutton", limit, time.Minute)
	switch {
	case strings.HasPrefix(note, "the kernel enforced the memory allowed, page cache included (cgroup version "):
		if want := "killed by the kernel: needs more than the 256 MiB it is allowed"; glutton.Status != result.OK || glutton.NA["put"] != want {
			t.Errorf("an engine that takes more: %+v", glutton)
		}
		if slow.Status != result.Hung {
			t.Errorf("an engine that hangs within its bound, for as long as was asked for: %+v", slow)
		}
	case strings.HasPrefix(note, "the kernel did not enforce the memory allowed, so the page cache was not bounded: cgroup version 2: "):
		if glutton.Status != result.OK || glutton.Metrics["put"] == 0 {
			t.Errorf("an engine that takes more and is not bounded: %+v", glutton)
		}
		if slow.Status != result.Hung {
			t.Errorf("an engine that hangs and is not bounded: %+v", slow)
		}
	default:
		t.Errorf("%q", note)
	}
}

// What was read from the device is a figure where the kernel bounds the page cache, and for
// nobody elsewhere, whatever a row has read.
func TestWhatIsReadIsNoFigureWithoutABound(t *testing.T) {
	out := outcome{Metrics: map[string]float64{workload.ReadColumn: 0, "uniform": 1}}
	out.unbounded("no cgroup")
	if _, there := out.Metrics[workload.ReadColumn]; there || out.NA[workload.ReadColumn] == "" || out.Metrics["uniform"] != 1 || len(out.Notes) != 1 {
		t.Errorf("%+v", out)
	}
}

// Only who had all of the patience there is with a bounded cell is too slow for its memory;
// with a shorter limit a hang stays one.
func TestAShorterLimitIsNoBound(t *testing.T) {
	p, hung := workload.Params{Workload: "memory", Memory: 64 << 20}, outcome{Status: result.Hung, Reason: "no end"}
	for limit, want := range map[time.Duration]result.Status{time.Second: result.Hung, boundedPatience: result.OK, time.Hour: result.OK} {
		out := tooSlow(hung, p, limit)
		if out.Status != want || want == result.OK && out.NA["uniform"] != "not done after 10m0s with the 64 MiB it is allowed" {
			t.Errorf("%s: %+v", limit, out)
		}
	}
	w, err := workload.Find("memory")
	if err != nil {
		t.Fatal(err)
	}
	c := cell{Table: Table{Workload: w, Params: workload.Params{Workload: "memory", N: 100, Memory: 1 << 20}}}
	if got := c.limit(&Plan{}, 0); got < boundedPatience {
		t.Errorf("a cell with bounded memory that nobody has limited may take %s", got)
	}
	if got := c.limit(&Plan{Limit: time.Second}, 0); got != time.Second {
		t.Errorf("limited to a second, it may take %s", got)
	}
	if out := tooSlow(outcome{Status: result.Crashed}, p, time.Hour); out.Status != result.Crashed {
		t.Errorf("%+v", out)
	}
}

func TestOverLimitIsNoFigureAndNoFault(t *testing.T) {
	out := overLimit(workload.Params{Workload: "memory", Memory: 64 << 20}, "needs more than the 64 MiB")
	if out.Status != result.OK || len(out.Metrics) != 0 || !strings.Contains(out.NA["uniform"], "64 MiB") {
		t.Errorf("%+v", out)
	}
}
