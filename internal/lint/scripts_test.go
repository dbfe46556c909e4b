package lint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// runScript runs one of scripts/ with a program in the place of go that prints its
// arguments, and ends with status. It returns what the script printed, and whether it succeeded.
func runScript(t *testing.T, status, name string, args ...string) (string, bool) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" { // where scripts find no program that is a script
		t.Skip("NOT TESTED: scripts/ take bash")
	}
	bin := t.TempDir()
	stub := "#!/bin/sh\necho \"go $*\"\nexit " + status + "\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, append([]string{filepath.Join("..", "..", "scripts", name)}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

// TestLongRefusesTimes: a time that scripts/long.sh does not understand is refused,
// not taken for another one.
func TestLongRefusesTimes(t *testing.T) {
	for _, time := range []string{"1h30m", "90", "h", "-1h", "1.2.3h", "1d", "1 h", "."} {
		if out, ok := runScript(t, "1", "long.sh", time); ok || strings.Contains(out, "go test") || !strings.Contains(out, time) {
			t.Errorf("%q: %q", time, out)
		}
	}
	for _, time := range []string{"", "1h", "90m", "1.5h", "5400s"} { // the program in the place of go ends it
		if out, ok := runScript(t, "1", "long.sh", time); ok || !strings.Contains(out, "go test") {
			t.Errorf("%q: %q", time, out)
		}
	}
}

// TestFuzzOfOnePackage: scripts/fuzz.sh takes a package however it is written, and
// fails where it finds no target.
func TestFuzzOfOnePackage(t *testing.T) {
	for _, pkg := range []string{"vfs", "./vfs", "vfs/", "./vfs/", "internal/../vfs"} {
		out, ok := runScript(t, "0", "fuzz.sh", "1s", pkg)
		if !ok || !strings.Contains(out, "-fuzztime 1s") || strings.Count(out, "== ") != strings.Count(out, "== ./vfs Fuzz") {
			t.Errorf("%q: %q", pkg, out)
		}
	}
	for _, pkg := range []string{"nosuch", "internal", "./", "internal/lint"} {
		if out, ok := runScript(t, "0", "fuzz.sh", "1s", pkg); ok || strings.Contains(out, "== ") || !strings.Contains(out, pkg) {
			t.Errorf("%q: %q", pkg, out)
		}
	}
	if out, ok := runScript(t, "0", "fuzz.sh", "1s"); !ok || !strings.Contains(out, "== ./vfs Fuzz") || !strings.Contains(out, "== ./internal/base Fuzz") {
		t.Errorf("all packages: %q", out)
	}
	if out, ok := runScript(t, "1", "fuzz.sh", "1s"); ok {
		t.Errorf("a target that fails: %q", out)
	}
}
