//go:build linux || darwin

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// start runs the command with pipes for its streams.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser, errs *bytes.Buffer) {
	t.Helper()
	cmd, errs = exec.Command(binary, args...), &bytes.Buffer{}
	cmd.Stderr = errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	t.Cleanup(func() { guard.Stop(); cmd.Process.Kill() })
	return cmd, in, out, errs
}

// A reader that has seen enough ends the scan without a word.
func TestScanIntoHead(t *testing.T) {
	dir := largeStore(t, 100_000)
	for _, args := range [][]string{{"scan", dir}, {"scan", "--json", "--reverse", dir}} {
		cmd, _, out, errs := start(t, args...)
		if line, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil || len(line) < 80 {
			t.Fatalf("first line %q, %v", line, err)
		}
		out.Close()
		if err := cmd.Wait(); err != nil || errs.Len() > 0 {
			t.Errorf("%v: %v, stderr %q", args, err, errs)
		}
	}
}

func TestShellPipe(t *testing.T) {
	dir := largeStore(t, 50_000)
	sh := exec.Command("sh", "-c", `{ "$0" scan --keys "$1"; echo "code $?" >&2; } | head -n 2`, binary, dir)
	var stdout, stderr bytes.Buffer
	sh.Stdout, sh.Stderr = &stdout, &stderr
	if err := sh.Run(); err != nil {
		t.Fatal(err)
	}
	if stdout.String() != "key00000000\nkey00000001\n" || stderr.String() != "code 0\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
}

// A write whose result nobody reads is done all the same, and the store closed.
func TestPutWithoutReader(t *testing.T) {
	dir := newStore(t)
	cmd, in, out, errs := start(t, "put", "--json", dir, "k", "-")
	out.Close()
	io.WriteString(in, "v")
	in.Close()
	if err := cmd.Wait(); err != nil || errs.Len() > 0 {
		t.Errorf("%v, stderr %q", err, errs)
	}
	if d := parse[statsDocument](t, cli(t, "stats", "--json", dir).out); d.Recovery.Needed {
		t.Error("the store was not closed")
	}
	cli(t, "get", dir, "k").ok(t, "v")
}

// With standard output closed, no file of the store may take its place.
func TestClosedStdout(t *testing.T) {
	dir := newStore(t, "k", "v")
	for _, line := range []string{`"$0" get "$1" k >&-`, `"$0" put --json "$1" k v >&- 2>&-`, `"$0" scan "$1" >&- 2>&- <&-`} {
		if out, err := exec.Command("sh", "-c", line, binary, dir).CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", line, err, out)
		}
	}
	if r := cli(t, "verify", dir); r.code != 0 {
		t.Errorf("%+v", r)
	}
}

// A result that cannot be printed is an error, which says of a commit that it stays.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("NOT TESTED: there is no device that is always full here: ", err)
	}
	defer full.Close()
	dir := newStore(t, "k", "v")
	for _, c := range []struct {
		args    []string
		commits bool
	}{
		{args: []string{"get", dir, "k"}}, {args: []string{"scan", dir}}, {args: []string{"stats", dir}},
		{args: []string{"verify", dir}}, {args: []string{"version"}},
		{[]string{"put", "--json", dir, "k", "v"}, true}, {[]string{"delete", "--json", dir, "k"}, true},
		{[]string{"delete", "--json", dir, "--prefix", "k"}, true},
	} {
		var errs bytes.Buffer
		cmd := exec.Command(binary, c.args...)
		cmd.Stdout, cmd.Stderr = full, &errs
		cmd.Run()
		if cmd.ProcessState.ExitCode() != exitEnvironment || !strings.Contains(errs.String(), "standard output") ||
			strings.Contains(errs.String(), "is done, and stays") != c.commits {
			t.Errorf("%v: code %d, %s", c.args, cmd.ProcessState.ExitCode(), &errs)
		}
	}
}

// A value from a pipe that nobody opens to write does not hold the command up for ever after a signal.
func TestInterruptPutOfAPipe(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _, _, errs := start(t, "put", newStore(t), "k", "--file", fifo)
	time.Sleep(100 * time.Millisecond) // until it waits
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("code %d, stderr %q", code, errs)
	}
}

// A link that leads nowhere is neither a store nor a place for one.
func TestDanglingLink(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", link, "k"}, {"put", "--create", link, "k", "v"}, {"put", link, "k", "v"}, {"stats", filepath.Join(link, "s")}} {
		cli(t, args...).fails(t, exitEnvironment, "link that leads nowhere")
	}
}

// A link to what may not be looked at, or to itself, is not called one that leads nowhere.
func TestLinkThatCannotBeFollowed(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{loop: "symbolic links"}
	if os.Getuid() == 0 {
		t.Log("NOT TESTED: a link to a directory that may not be read: to root nothing is forbidden")
	} else {
		private, link := filepath.Join(dir, "private"), filepath.Join(dir, "link")
		if err := errors.Join(os.MkdirAll(filepath.Join(private, "store"), 0o755), os.Symlink("private/store", link), os.Chmod(private, 0)); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(private, 0o755)
		links[link] = "permission denied"
	}
	for link, why := range links {
		for _, args := range [][]string{{"get", link, "k"}, {"put", "--create", link, "k", "v"}, {"put", link, "k", "v"}, {"stats", link + "/../s"}} {
			r := cli(t, args...)
			r.fails(t, exitEnvironment, why)
			if strings.Contains(r.err, "leads nowhere") {
				t.Errorf("%v: %s", args, r.err)
			}
		}
	}
}

func TestInterruptScan(t *testing.T) {
	dir := largeStore(t, 100_000)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd, _, out, errs := start(t, "scan", dir)
		r := bufio.NewReaderSize(out, 16)
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Signal(sig)
		time.Sleep(50 * time.Millisecond) // the signal is there before the pipe has room
		n, _ := io.Copy(io.Discard, r)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || errs.String() != "cairn scan: interrupted\n" {
			t.Errorf("code %d, stderr %q", code, errs)
		}
		if n > 1<<20 {
			t.Errorf("it went on for %d bytes", n)
		}
	}
}

// A scan whose output nobody takes does not hang for ever after a signal.
func TestInterruptBlockedScan(t *testing.T) {
	cmd, _, out, _ := start(t, "scan", largeStore(t, 50_000))
	if _, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	cmd.Process.Signal(os.Interrupt)
	cmd.Process.Wait()
	if d := time.Since(begin); d > 3*interruptGrace {
		t.Errorf("it took %v", d)
	}
}

// So it is where the scan has ended, and only what it printed last waits for a reader.
func TestInterruptBlockedEnd(t *testing.T) {
	cmd, _, out, _ := start(t, "scan", "--limit", strconv.Itoa((pipeBytes+outputBuffer/2)/110), largeStore(t, 5_000))
	if line, err := bufio.NewReaderSize(out, 16).ReadString('\n'); err != nil || len(line) < 90 || len(line) > 120 {
		t.Fatalf("first line %q, %v", line, err)
	}
	time.Sleep(500 * time.Millisecond)
	begin := time.Now()
	cmd.Process.Signal(os.Interrupt)
	cmd.Process.Wait()
	if d := time.Since(begin); d > 3*interruptGrace {
		t.Errorf("it took %v", d)
	}
}

// fullPipe is the end of a pipe that takes nothing, and that nobody reads.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	raw, err := w.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { // which does not block, until a process gets it
			for err := error(nil); err != syscall.EAGAIN; {
				_, err = syscall.Write(int(fd), []byte{0})
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// writesToPipe reports whether a process waits for room in a pipe, as far as the system tells: Linux does.
func writesToPipe(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/wchan", pid))
	return slices.ContainsFunc(threads, func(name string) bool {
		in, _ := os.ReadFile(name)
		return bytes.HasSuffix(in, []byte("pipe_write"))
	})
}

// A signal ends whatever waits for a reader, also what prints when the store is closed or where there is none, and what cannot say
// how it failed. It was so only as long as a store was open to be read. What was committed is said to be done.
func TestInterruptWhateverWaitsForAReader(t *testing.T) {
	type blocked struct {
		cmd  *exec.Cmd
		errs *bytes.Buffer // nil: nobody reads that, either
		want string
	}
	var all []blocked
	begin := func(want string, readErrors bool, args ...string) {
		b := blocked{exec.Command(binary, args...), new(bytes.Buffer), want}
		b.cmd.Stdout = fullPipe(t)
		if b.cmd.Stderr = b.errs; !readErrors {
			b.errs, b.cmd.Stderr = nil, b.cmd.Stdout
		}
		if err := b.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		guard := time.AfterFunc(20*time.Second, func() { b.cmd.Process.Kill() })
		t.Cleanup(func() { guard.Stop(); b.cmd.Process.Kill() })
		all = append(all, b)
	}
	dir := newStore(t, "k", "v")
	for _, args := range [][]string{{"stats", dir}, {"get", dir, "k"}, {"version"}, {"--version"}, {"help", "exit-codes"}, {"completion", "bash"}} {
		begin("", true, args...)
	}
	begin("", true, "verify", newStore(t, "k", "v"))
	begin("", false, "get", dir, "none")
	begin("", false, "frobnicate")
	const done = `{"error":{"code":"interrupted","exit":130,"command":"cairn %s","message":"interrupted, but what was asked for had begun: it is done, and stays"}}` + "\n"
	put, deleted := newStore(t), newStore(t, "k", "v")
	begin(fmt.Sprintf(done, "put"), true, "put", "--json", put, "k", "v")
	begin(fmt.Sprintf(done, "delete"), true, "delete", "--json", deleted, "k")
	begin("", false, "put", "--json", newStore(t), "k", "v")
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		if !slices.ContainsFunc(all, func(b blocked) bool { return !writesToPipe(b.cmd.Process.Pid) }) {
			break
		}
	}
	for _, b := range all {
		b.cmd.Process.Signal(os.Interrupt)
	}
	for _, b := range all {
		b.cmd.Wait()
		if code := b.cmd.ProcessState.ExitCode(); code != exitInterrupted || b.errs != nil && b.errs.String() != b.want {
			t.Errorf("%v: code %d, stderr %q", b.cmd.Args[1:], code, b.errs)
		}
	}
	cli(t, "get", put, "k").ok(t, "v")
	cli(t, "get", deleted, "k").fails(t, exitNotFound)
}

// pipeBytes is what a pipe takes that nobody reads.
const pipeBytes = 64 << 10

// A put that waits for its value has not touched the store, and can be ended.
func TestInterruptPut(t *testing.T) {
	dir := newStore(t, "k", "v")
	cmd, in, _, errs := start(t, "put", dir, "k", "-")
	io.WriteString(in, "half a va")
	time.Sleep(100 * time.Millisecond)
	cli(t, "put", dir, "other", "v").ok(t, "") // not locked out
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || errs.String() != "cairn put: interrupted\n" {
		t.Errorf("code %d, stderr %q", code, errs)
	}
	cli(t, "get", dir, "k").ok(t, "v")
}

func TestInterruptWait(t *testing.T) {
	dir := newStore(t, "k", "v")
	openStore(t, dir, nil)
	cmd, _, _, errs := start(t, "put", "--wait", "1h", dir, "k", "w")
	time.Sleep(100 * time.Millisecond)
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("code %d, stderr %q", code, errs)
	}
}

// onTerminal runs the command with a terminal for standard output and error.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, args...)
	f, err := pty.Start(cmd)
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	defer f.Close()
	out, _ := io.ReadAll(f) // ends with EIO when the process has closed its side
	cmd.Wait()
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

// No key, value or message reaches a terminal in a form that could steer it.
func TestTerminal(t *testing.T) {
	evil := "\x1b]0;title\x07\u009b31m\xff"
	safe := `\x1b]0;title\x07\xc2\x9b31m\xff`
	dir := newStore(t, "k", evil, evil, "v")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", dir, "k"}, safe + "\n"},
		{[]string{"get", "--raw", dir, "k"}, evil},
		{[]string{"get", "--hex", dir, "6b"}, "1b5d303b7469746c6507c29b33316dff\n"},
		{[]string{"scan", dir}, safe + "\tv\nk\t" + safe + "\n"},
		{[]string{"scan", "--json", "--prefix", "k", dir}, `{"key":"k","value_base64":"G10wO3RpdGxlB8KbMzFt/w=="}` + "\n"},
		{[]string{"get", dir, "a" + evil}, `cairn get: key "a` + safe + `" not found in ` + dir + "\n"},
		{[]string{"get", "none\x1b[31m\u009b", "k"}, "cairn get: there is no store in none\\x1b[31m\\xc2\\x9b (put --create makes one)\n"},
		{[]string{"scan", "--hex", "--from", "\x1b", dir}, "cairn scan: --from \"\\x1b\": not hexadecimal: write two digits, 0-9 or a-f, for each byte\nTry \"cairn scan --help\".\n"},
	} {
		if got := onTerminal(t, c.args...); got != c.want {
			t.Errorf("%q\ngot  %q\nwant %q", c.args, got, c.want)
		}
	}
}

func TestUsageOnTerminal(t *testing.T) {
	for _, args := range [][]string{{"\x1b[31m"}, {"get", "--\x1b[31m"}, {"help", "\x1b[31m"}, {"get", "--json", "\x1b[31m", "k"}} {
		if got := onTerminal(t, args...); strings.Contains(got, "\x1b") {
			t.Errorf("%q: %q", args, got)
		}
	}
}
