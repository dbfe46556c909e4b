package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/harness"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
)

func TestMain(m *testing.M) {
	if harness.IsChild() {
		harness.Child()
	}
	os.Exit(scratch.Tests(m.Run))
}

// call runs a command line and returns what it printed.
func call(ctx context.Context, args ...string) (out, errs string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := command()
	cmd.SetArgs(doubleDashes(args))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(ctx)
	return stdout.String(), stderr.String(), err
}

func TestRunInEveryFormat(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "out.json")
	args := []string{"run", "-suite", "w1/sound,w4/sound", "-n", "30", "-rounds", "1", "-engines", "bbolt,pogreb,gomap", "-sync", "off", "-values", "256", "-settle=false", "-dir", dir}
	for format, want := range map[string]string{
		"text":      "WHERE CAIRN IS BEHIND",
		"json":      `"schema": "cairn-bench/1"`,
		"benchstat": "BenchmarkW4/variant=sound/n=30/v=256/sync=off/op=get/engine=bbolt-",
	} {
		out, errs, err := call(t.Context(), append(args, "-format", format, "-json", file)...)
		if err != nil || !strings.Contains(out, want) || !strings.Contains(errs, "3 engines, 2 workloads, up to 1 rounds: about ") {
			t.Errorf("%s: %v\n%s\n%s", format, err, out, errs)
		}
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if run, err := result.Decode(f); err != nil || len(run.Cells) != 6 {
		t.Errorf("the file of -json: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

const ownRecords = "{\"id\":\"b\",\"text\":\"one\"}\n{\"id\":\"a\",\"text\":\"another, which is longer\"}\nno record\n{\"id\":\"c\"}\n"

func TestOwnRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.jsonl")
	if err := os.WriteFile(path, []byte(ownRecords), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "-suite", "w1,w4,load,large", "-engines", "bbolt,pogreb", "-rounds", "1", "-sync", "off", "-settle=false", "-dir", t.TempDir(), "-data", path}
	_, _, err := call(t.Context(), args...)
	if exitCode(err) != 2 || !strings.Contains(err.Error(), "line 3: no JSON") {
		t.Errorf("a malformed line: %v", err)
	}
	out, errs, err := call(t.Context(), append(args, "-data-skip-bad", "-data-key", "id")...)
	if err != nil {
		t.Fatal(err)
	}
	for text, wants := range map[string][]string{
		errs: {"3 records of 25 B on average from own.jsonl", "left out: line 3: no JSON", "not run: large/sound: its sizes", "not run: w1/published:"},
		out:  {"3 records of own.jsonl, 77.0 B together, 1 malformed ones left out, keys from field id", "w1/sound/n=3/v=25/sync=off/data", "load/sound/n=3/v=25/sync=off/data"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
	}
}

func TestListNamesEverything(t *testing.T) {
	out, _, err := call(t.Context(), "list")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cairn", "boltdb", "bbolt", "pebble", "badger", "goleveldb", "nutsdb", "pogreb", "gomap", "w1", "w4",
		"floor", "durable", "processes", "memory", "lean", "latency", "sustained", "crash", "10000, with syncs 2000", "pogreb, no order: a hash index has no order", "DB.NoSync = true"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"run", "-suite", "w9"}, {"run", "-suite", "", "-n", "9", "-engines", "gomap", "-rounds", "1"}, {"run", "-engines", "", "-suite", "w4", "-n", "9", "-rounds", "1"}, {"run", "-suite", "w1", "-zipf", "0.9", "-n", "9", "-engines", "gomap"}, {"run", "-suite", "w1", "-rate", "9", "-n", "9", "-engines", "gomap"}, {"run", "-suite", "ycsb", "-seconds", "9", "-n", "9", "-engines", "gomap"}, {"run", "-engines", "oracle"}, {"run", "-sync", "maybe"}, {"run", "-format", "xml"},
		{"run", "-quick", "-full"}, {"run", "-n", "-4"}, {"run", "-n", "0"}, {"run", "-n", "5,x"}, {"run", "-n", "5,7,5"}, {"run", "-values", "2000000"}, {"run", "-nosuch"}, {"run", "stray"}, {"list", "stray"},
		{"run", "-keys", "512"}, {"run", "-keys", "3", "-n", "5000"}, {"run", "-zipf", "-1"}, {"run", "-rate", "-1"}, {"run", "-suite", "latency", "-rate", "0.1"}, {"run", "-suite", "sustained", "-rate", "9", "-seconds", "0.1"}, {"run", "-seconds", "-1"}, {"run", "-seconds", "1e9"}, {"run", "-time", "-1s"}, {"run", "-timeout", "-1s"}, {"run", "-dir", file, "-n", "9", "-engines", "gomap"}, {"frob"}, {"run", "-data-key", "id"},
		{"run", "-data", "missing.jsonl"}, {"run", "-data", "x.jsonl", "-values", "9"}, {"run", "-suite", "w1/loud"}, {"run", "-suite", "w1/published", "-values", "9"},
	} {
		if _, _, err := call(t.Context(), args...); exitCode(err) != 2 {
			t.Errorf("%v: %v is exit code %d, want 2", args, err, exitCode(err))
		}
	}
	if _, err := os.Stat("/proc/self"); err != nil {
		return
	}
	if _, _, err := call(t.Context(), "run", "-dir", "/proc/self", "-n", "9", "-engines", "gomap"); exitCode(err) != 2 || !strings.HasPrefix(err.Error(), "-dir: ") {
		t.Errorf("a directory in which nothing can be made: %v is exit code %d, want 2", err, exitCode(err))
	}
}

// A zero stands for a flag that was not given: one that is given is no way to ask for the default.
func TestZeroIsRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, flag := range []string{"-zipf", "-values", "-keys", "-rate", "-seconds", "-rounds", "-time", "-timeout"} {
		for _, zero := range []string{"0", "-0", "+0"} {
			_, _, err := call(ctx, "run", "-suite", "load", "-n", "9", "-engines", "gomap", "-html", "none", "-dir", t.TempDir(), flag, zero)
			if exitCode(err) != 2 || !strings.HasPrefix(err.Error(), flag+" ") {
				t.Errorf("%s %s: %v", flag, zero, err)
			}
		}
	}
}

// Where the figures are to go is looked at before they are measured: a run of hours used to
// end with nothing because its file could not be written.
func TestPlacesAreCheckedBeforehand(t *testing.T) {
	dir := t.TempDir()
	own, file := filepath.Join(dir, "own.jsonl"), filepath.Join(dir, "x")
	if err := os.WriteFile(own, []byte("{\"id\":\"a\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(dir, "link")); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	for want, args := range map[string][]string{
		"-json " + dir + ": a directory":              {"-json", dir},
		"-html " + dir + ": a directory":              {"-html", dir},
		"-json x/y/z: no directory x/y":               {"-json", "x/y/z"},
		"-html x/y/z: no directory x/y":               {"-html", "x/y/z"},
		"-continue x/y/z: no directory x/y":           {"-continue", "x/y/z"},
		"-json and -html name the same file, " + file: {"-json", filepath.Join(dir, ".", "x"), "-html", file},
		"-json and -data name the same file":          {"-json", own, "-data", own},
		"-html and -data name the same file":          {"-html", filepath.Join(dir, "link"), "-data", own},
		"-json /proc/x: ":                             {"-json", "/proc/x"},
	} {
		if _, err := os.Stat("/proc/self"); err != nil && strings.Contains(want, "/proc") {
			continue
		}
		out, _, err := call(t.Context(), append([]string{"run", "-suite", "w4/sound", "-n", "1", "-rounds", "1", "-engines", "gomap", "-sync", "off", "-settle=false", "-dir", t.TempDir()}, args...)...)
		if exitCode(err) != 2 || !strings.HasPrefix(err.Error(), want) || out != "" {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// What cannot be written at the end is told, and takes nothing away from what can.
func TestAFullDiskAtTheEnd(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	args := []string{"run", "-suite", "w4/sound", "-n", "10", "-rounds", "1", "-engines", "gomap", "-sync", "off", "-settle=false", "-dir", t.TempDir()}
	page := filepath.Join(t.TempDir(), "out.html")
	out, _, err := call(t.Context(), append(args, "-json", "/dev/full", "-html", page)...)
	if exitCode(err) != 1 || !strings.Contains(err.Error(), "not saved to /dev/full: ") || !strings.Contains(out, "| gomap") {
		t.Errorf("%v\n%s", err, out)
	}
	if run, err := readRun(page); err != nil || len(run.Cells) != 1 {
		t.Errorf("the other file: %v", err)
	}
}

// writerFunc is a standard output.
type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// What was measured is in its files before it is shown: the program is killed where nobody
// reads its standard output.
func TestFilesAreWrittenBeforeAnythingIsShown(t *testing.T) {
	page, shown := filepath.Join(t.TempDir(), "out.html"), 0
	cmd := command()
	cmd.SetArgs(doubleDashes([]string{"run", "-suite", "w4/sound", "-n", "10", "-rounds", "1", "-engines", "gomap", "-sync", "off", "-settle=false", "-dir", t.TempDir(), "-html", page}))
	cmd.SetErr(io.Discard)
	cmd.SetOut(writerFunc(func(b []byte) (int, error) {
		if _, err := os.Stat(page); err != nil && shown == 0 {
			t.Error("shown before it was saved: ", err)
		}
		shown++
		return len(b), nil
	}))
	if err := cmd.ExecuteContext(t.Context()); err != nil || shown == 0 {
		t.Errorf("%v, %d writes", err, shown)
	}
}

// The end of the terminal interrupts a run as Ctrl-C does.
func TestTheEndOfTheTerminalInterrupts(t *testing.T) {
	if runtime.GOOS == "windows" || signal.Ignored(syscall.SIGHUP) {
		t.Skip("NOT TESTED: no SIGHUP here")
	}
	ctx, stop := untilInterrupted(t.Context())
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}

func TestInterruptIsItsOwnExitCode(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := call(ctx, "run", "-n", "10", "-rounds", "1", "-engines", "gomap", "-dir", t.TempDir())
	if code := exitCode(err); code != 130 {
		t.Errorf("%v: exit code %d", err, code)
	}
	if exitCode(errBadCells) != 1 || exitCode(errors.New("x")) != 1 || exitCode(nil) != 0 {
		t.Error("exit codes")
	}
}

// What was measured before the interruption is shown and saved, and says so.
func TestAnInterruptedRunIsReported(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	out := filepath.Join(t.TempDir(), "out.json")
	text, _, err := call(ctx, "run", "-suite", "w4/sound", "-n", "10", "-rounds", "100000", "-engines", "gomap", "-json", out, "-html", "none", "-dir", t.TempDir())
	if code := exitCode(err); code != 130 {
		t.Fatalf("%v: exit code %d", err, code)
	}
	run, err := readRun(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Cells) == 0 || len(run.Cells) > 100_000 || !strings.Contains(run.Stopped, "ended early") {
		t.Errorf("%d cells; stopped: %q", len(run.Cells), run.Stopped)
	}
	if !strings.Contains(text, "ended early") || !strings.Contains(text, "| gomap") {
		t.Errorf("%.2000s", text)
	}
	page := filepath.Join(t.TempDir(), "out.html")
	if _, _, err := call(t.Context(), "report", out, "-html", page); err != nil {
		t.Fatal(err)
	}
	if again, err := readRun(page); err != nil || len(again.Cells) != len(run.Cells) || again.Stopped != run.Stopped {
		t.Errorf("the report has other data: %v", err)
	}
}

func TestSingleDashes(t *testing.T) {
	got := strings.Join(doubleDashes([]string{"run", "-suite", "w1", "--n", "5", "-n=5", "-h", "-5", "-"}), " ")
	if got != "run --suite w1 --n 5 --n=5 -h -5 -" {
		t.Errorf("%q", got)
	}
}
