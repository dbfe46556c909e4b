package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// fakeGroups lays out what /proc and a cgroup file system look like.
func fakeGroups(t *testing.T, controllers string) (process, own string) {
	t.Helper()
	process, mount := t.TempDir(), t.TempDir()
	own = filepath.Join(mount, "user", "session")
	for _, dir := range []string{own, filepath.Dir(own)} {
		os.MkdirAll(dir, 0o755)
		os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(controllers), 0o644)
	}
	os.WriteFile(filepath.Join(process, "mountinfo"), []byte("22 1 0:20 / / rw - ext4 /dev/x rw\n30 22 0:26 / "+mount+" rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"), 0o644)
	os.WriteFile(filepath.Join(process, "cgroup"), []byte("4:memory:/old\n0::/user/session\n"), 0o644)
	return process, own
}

func TestMemoryGroup(t *testing.T) {
	process, own := fakeGroups(t, "cpu memory pids\n")
	g, err := newMemoryGroup(process, "bench", 64<<20)
	if err != nil || g.dir != filepath.Join(own, "bench") {
		t.Fatalf("%+v, %v", g, err)
	}
	if limit, _ := os.ReadFile(filepath.Join(g.dir, "memory.max")); string(limit) != "67108864" {
		t.Errorf("limit %q", limit)
	}
	if err := g.add(123); err != nil {
		t.Error(err)
	}
	if g.killed() {
		t.Error("nobody was killed")
	}
	os.WriteFile(filepath.Join(g.dir, "memory.events"), []byte("low 0\noom 1\noom_kill 1\n"), 0o644)
	if !g.killed() {
		t.Error("a kill is not seen")
	}
}

func TestWithoutAMemoryControllerItIsSaid(t *testing.T) {
	process, _ := fakeGroups(t, "cpu pids\n")
	if _, err := newMemoryGroup(process, "bench", 1); err == nil || !strings.Contains(err.Error(), "no memory controller") {
		t.Errorf("%v", err)
	}
	if _, err := newMemoryGroup(t.TempDir(), "bench", 1); err == nil {
		t.Error("a group without cgroups")
	}
}

func TestOverLimitIsNoFigureAndNoFault(t *testing.T) {
	out := overLimit(workload.Params{Workload: "memory", Memory: 64 << 20})
	if out.Status != result.OK || len(out.Metrics) != 0 || !strings.Contains(out.NA["uniform"], "64 MiB") {
		t.Errorf("%+v", out)
	}
}
