//go:build linux

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// smallMark makes the test binary a harness whose data go to a file system of 6 MiB,
// which it mounts in a mount namespace of its own.
const smallMark = "CAIRN_BENCH_TEST_SMALL_DISK"

// onSmallDisk is what that harness prints.
type onSmallDisk struct {
	Failed string // why nothing was run
	Cells  []result.Cell
	Left   []string // files when the run is over
}

func runOnSmallDisk(dir string) {
	var out onSmallDisk
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=6m"); err != nil {
		out.Failed = fmt.Sprintf("mounting a small file system: %v", err)
	} else if err := out.run(dir); err != nil {
		out.Failed = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(out)
	os.Exit(0)
}

func (out *onSmallDisk) run(dir string) error {
	var engines []engine.Driver
	for _, name := range []string{"bbolt", "pebble", "badger", "pogreb", "cairn", "gomap"} {
		d, err := engine.Find(name)
		if err != nil {
			return err
		}
		engines = append(engines, d)
	}
	w, err := workload.Find("w1")
	if err != nil {
		return err
	}
	plan := NewPlan(engines, []workload.Workload{w}, workload.Scale{Counts: []int{2500}, Sync: []bool{false}, Seed: 1})
	plan.Limit = 30 * time.Second
	run, err := Run(context.Background(), plan, Config{Dir: dir, Seed: 1})
	if err != nil {
		return err
	}
	out.Cells = run.Cells
	left, err := os.ReadDir(dir)
	for _, f := range left {
		out.Left = append(out.Left, f.Name())
	}
	return err
}

// An engine that fills the disk fails or crashes, and the row says that the disk was
// full even where the engine does not; the next engine has all of it again.
func TestAFullDiskFailsTheCellAndNotTheRun(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := exec.Command(program)
	h.Env = append(os.Environ(), smallMark+"="+t.TempDir())
	h.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	text, err := h.Output()
	if err != nil && len(text) == 0 {
		t.Skip("no mount namespace of its own here: ", err)
	}
	var out onSmallDisk
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if strings.HasPrefix(out.Failed, "mounting") {
		t.Skip(out.Failed)
	}
	if out.Failed != "" || len(out.Left) > 0 {
		t.Errorf("%s; left %v", out.Failed, out.Left)
	}
	var seen []string
	for _, c := range out.Cells {
		seen = append(seen, c.Engine)
		if c.Engine == "gomap" {
			if c.Status != result.OK {
				t.Errorf("gomap, which needs no disk: %s: %s", c.Status, c.Reason)
			}
			continue
		}
		said := strings.Contains(c.Reason, "no space left") || strings.Contains(c.Reason, fullDisk)
		if !slices.Contains([]result.Status{result.Failed, result.Crashed, result.Hung}, c.Status) || !said {
			t.Errorf("%s: %s: %s", c.Engine, c.Status, c.Reason)
		}
		t.Logf("%s: %s: %s", c.Engine, c.Status, c.Reason)
	}
	if len(seen) != 6 {
		t.Errorf("cells of %v", seen)
	}
}
