//go:build linux

package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// harnessMark makes the test binary a harness whose only cell hangs.
const harnessMark = "CAIRN_BENCH_TEST_HARNESS"

// harnessSuite makes it run a workload without an end in place of one that hangs.
const harnessSuite = "CAIRN_BENCH_TEST_SUITE"

// harnessRounds makes it run many rounds.
const harnessRounds = "CAIRN_BENCH_TEST_ROUNDS"

// harnessEngine names the engine in place of the one that hangs.
const harnessEngine = "CAIRN_BENCH_TEST_ENGINE"

func runHangingHarness(dir string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	scale, suite, name := workload.Scale{Counts: []int{20}, Sync: []bool{false}, Seed: 1}, "w1", "hangs"
	if os.Getenv(harnessSuite) != "" {
		scale.Counts, suite, name = []int{1 << 30}, os.Getenv(harnessSuite), "good"
	}
	if other := os.Getenv(harnessEngine); other != "" {
		name = other
	}
	d, _ := engine.Find(name)
	w, _ := workload.Find(suite)
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, scale)
	if os.Getenv(harnessRounds) != "" {
		plan.Rounds = 1000
	}
	_, err := Run(ctx, plan, Config{Dir: dir, Seed: 1})
	if Interrupted(err) {
		os.Exit(130)
	}
	os.Exit(1)
}

// startHarness starts a harness of its own on a directory.
func startHarness(t *testing.T, dir string, settings ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := exec.Command(program)
	h.Env = append(append(os.Environ(), harnessMark+"="+dir), settings...)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

// Whatever ends the harness, neither its child, nor what that started, nor the
// data are left; an engine that is deaf to signals makes no difference.
func TestKillingTheHarnessLeavesNothing(t *testing.T) {
	for _, name := range []string{"hangs", "deaf", "multiplies"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(name+"/"+sig.String(), func(t *testing.T) {
				dir := t.TempDir()
				h := startHarness(t, dir, harnessEngine+"="+name)
				waitForPids(t, dir)
				if err := h.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				h.Wait()
				if code := h.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != 130 {
					t.Errorf("exit code %d, want 130", code)
				}
				nothingLeft(t, dir)
			})
		}
	}
}

func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "a process is alive", func() bool { return workingBelow(dir) == 0 })
	eventually(t, "data are left", func() bool {
		left, err := os.ReadDir(dir)
		return err == nil && len(left) == 0
	})
}

// Killed at any moment: between cells, while a child starts, while data are removed.
// What the killed could not remove the next run does.
func TestKillingTheHarnessAtAnyMomentLeavesNothing(t *testing.T) {
	for i := range 12 {
		sig := []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}[i%2]
		dir := t.TempDir()
		h := startHarness(t, dir, harnessEngine+"=good", harnessRounds+"=many")
		eventually(t, "no run began", func() bool {
			marks, _ := filepath.Glob(filepath.Join(dir, "*", ".owner"))
			return len(marks) > 0
		})
		time.Sleep(rand.N(400 * time.Millisecond))
		if err := h.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		h.Wait()
		eventually(t, "a process is alive", func() bool { return workingBelow(dir) == 0 })
		if sig == syscall.SIGKILL {
			root, release, err := scratch.Make(dir) // as the next run does
			if err != nil {
				t.Fatal(err)
			}
			release()
			scratch.Remove(root)
		}
		empty(t, dir)
	}
}

// An engine may leave processes behind, even ones that went away from its group and
// hold its output open. They are killed, the row says so, and nobody waits for them.
func TestProcessesLeftBehindAreKilled(t *testing.T) {
	for _, c := range []struct {
		engine string
		limit  time.Duration
		status result.Status
		note   string
	}{
		{"leaves processes", time.Minute, result.OK, "left 2 processes running when it had ended; they were killed"},
		{"multiplies", 2 * time.Second, result.Hung, ""},
	} {
		dir := t.TempDir()
		began := time.Now()
		got, err := run(t, t.Context(), dir, "w1", 1, c.limit, c.engine)
		t.Log(c.engine, "took", time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		cell := got.Cells[0]
		if notes := strings.Join(cell.Notes, "\n"); cell.Status != c.status || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %s %s, notes %q", c.engine, cell.Status, cell.Reason, notes)
		}
		nothingLeft(t, dir)
	}
}

// Nor are processes that a workload has started, which know nothing of the harness.
func TestKillingTheHarnessEndsPeers(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			h := startHarness(t, dir, harnessSuite+"=crash")
			eventually(t, "the cell and its writer do not run", func() bool { return workingBelow(dir) >= 2 })
			if err := h.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			h.Wait()
			nothingLeft(t, dir)
		})
	}
}

// workingBelow counts the processes whose working directory is below dir.
func workingBelow(dir string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	n := 0
	for _, l := range links {
		if cwd, err := os.Readlink(l); err == nil && strings.HasPrefix(cwd, dir) {
			n++
		}
	}
	return n
}

// A cell that hangs is killed with everything it started.
func TestHungCellTakesItsProcessesAlong(t *testing.T) {
	dir := t.TempDir()
	type pids struct{ child, grandchild int }
	seen := make(chan pids, 1)
	go func() {
		a, b := waitForPids(t, dir)
		seen <- pids{a, b}
	}()
	if _, err := run(t, t.Context(), dir, "w1", 1, 700*time.Millisecond, "hangs"); err != nil {
		t.Fatal(err)
	}
	p := <-seen
	eventually(t, "the child is alive", func() bool { return gone(p.child) })
	eventually(t, "what the child started is alive", func() bool { return gone(p.grandchild) })
}

func waitForPids(t *testing.T, dir string) (child, grandchild int) {
	eventually(t, "the child does not start", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "store", "pids"))
		if len(files) == 0 {
			return false
		}
		text, _ := os.ReadFile(files[0])
		n, _ := fmt.Sscanf(string(text), "%d %d\n", &child, &grandchild)
		return n == 2
	})
	return child, grandchild
}

// gone: ended, or a zombie nobody has waited for yet.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z") || strings.HasPrefix(rest, "X")
}

func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Error(complaint)
}
