//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// harnessMark makes the test binary a harness whose only cell hangs.
const harnessMark = "CAIRN_BENCH_TEST_HARNESS"

// harnessSuite makes it run a workload without an end in place of one that hangs.
const harnessSuite = "CAIRN_BENCH_TEST_SUITE"

func runHangingHarness(dir string) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	scale, suite, name := workload.Scale{N: 20, Sync: []bool{false}, Seed: 1}, "w1", "hangs"
	if os.Getenv(harnessSuite) != "" {
		scale.N, suite, name = 1<<30, os.Getenv(harnessSuite), "good"
	}
	d, _ := engine.Find(name)
	w, _ := workload.Find(suite)
	plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, scale)
	_, err := Run(ctx, plan, Config{Dir: dir, Seed: 1})
	if Interrupted(err) {
		os.Exit(130)
	}
	os.Exit(1)
}

// Whatever ends the harness, neither its child, nor what that started, nor the
// data are left.
func TestKillingTheHarnessLeavesNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			h := exec.Command(program)
			h.Env = append(os.Environ(), harnessMark+"="+dir)
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			child, grandchild := waitForPids(t, dir)
			if err := h.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			h.Wait()
			if code := h.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != 130 {
				t.Errorf("exit code %d, want 130", code)
			}
			eventually(t, "the child is alive", func() bool { return gone(child) })
			eventually(t, "what the child started is alive", func() bool { return gone(grandchild) })
			eventually(t, "data are left", func() bool {
				left, err := os.ReadDir(dir)
				return err == nil && len(left) == 0
			})
		})
	}
}

// Nor are processes that a workload has started, which know nothing of the harness.
func TestKillingTheHarnessEndsPeers(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			h := exec.Command(program)
			h.Env = append(os.Environ(), harnessMark+"="+dir, harnessSuite+"=crash")
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the cell and its writer do not run", func() bool { return workingBelow(dir) >= 2 })
			if err := h.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			h.Wait()
			eventually(t, "a process is alive", func() bool { return workingBelow(dir) == 0 })
			eventually(t, "data are left", func() bool {
				left, err := os.ReadDir(dir)
				return err == nil && len(left) == 0
			})
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
