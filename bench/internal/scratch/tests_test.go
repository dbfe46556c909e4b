//go:build unix

package scratch

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ownerMark makes the test binary one whose only test hangs, or ends by a fault.
const ownerMark = "CAIRN_BENCH_TEST_OWNER"

// churning begins what makes it make and remove directories in the one that follows.
const churning = "churn "

// TestOwner is run by the test below in a process of its own.
func TestOwner(t *testing.T) {
	how := os.Getenv(ownerMark)
	if how == "" {
		t.Skip("only in a process of its own")
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "data"), make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if dir, ok := strings.CutPrefix(how, churning); ok {
		churn(t, dir)
	}
	if how == "fault" {
		go panic("a fault in a goroutine, after which no test cleans up")
	}
	os.Stdout.WriteString("ready\n")
	time.Sleep(time.Hour)
}

// A killed test binary used to leave its directories behind for ever.
func TestNothingIsLeftOfTestsThatAreKilled(t *testing.T) {
	for how, left := range map[string]bool{"interrupt": false, "terminated": false, "killed": true, "timeout": true, "fault": true} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			endOwner(t, dir, how)
			if isLeft := len(below(t, dir)) > 0; isLeft != left {
				t.Errorf("left behind: %v, want %v", isLeft, left)
			}
			_, release, err := Make(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if now := below(t, dir); len(now) != 1 {
				t.Errorf("after the next one: %v", now)
			}
		})
	}
}

// churn makes and removes directories until it is killed.
func churn(t *testing.T, dir string) {
	os.Stdout.WriteString("ready\n")
	for {
		root, release, err := Make(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "store", "z"} {
			os.Mkdir(filepath.Join(root, name), 0o755)
			os.WriteFile(filepath.Join(root, name, "data"), []byte("x"), 0o600)
		}
		release()
		Remove(root)
	}
}

// Wherever in its work an owner is killed, the next one finds all data it left.
func TestAKillAtAnyMomentLeavesNoData(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		endOwner(t, t.TempDir(), churning+dir)
		_, release, err := Make(dir)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if data, _ := filepath.Glob(filepath.Join(dir, prefix+"*", "*", "data")); len(data) > 0 {
			t.Errorf("left: %v", data)
		}
	}
}

func endOwner(t *testing.T, dir, how string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit := "1m"
	if how == "timeout" {
		limit = "200ms"
	}
	owner := exec.Command(program, "-test.run=^TestOwner$", "-test.timeout="+limit)
	owner.Env = append(os.Environ(), ownerMark+"="+how, "TMPDIR="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "ready") {
	}
	churns := strings.HasPrefix(how, churning)
	if churns {
		time.Sleep(rand.N(20 * time.Millisecond))
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		if sig.String() == how || churns && sig == syscall.SIGKILL {
			if err := owner.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
	}
	for lines.Scan() {
	}
	if err := owner.Wait(); err == nil {
		t.Error("it ended well")
	}
}

func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		names = append(names, one.Name())
	}
	return names
}
