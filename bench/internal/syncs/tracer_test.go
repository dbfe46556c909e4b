//go:build linux && (amd64 || arm64)

package syncs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn/bench/internal/scratch"
	"golang.org/x/sys/unix"
)

const tracedMark = "CAIRN_BENCH_TEST_TRACED"

func TestMain(m *testing.M) {
	if dir := os.Getenv(tracedMark); dir != "" {
		if err := Enter(); err != nil {
			panic(err)
		}
		tracedProgram(dir)
		os.Exit(0)
	}
	if os.Getenv(leaverMark) != "" {
		leave()
	}
	os.Exit(scratch.Tests(m.Run))
}

// Kinds of the traced program.
const (
	plain Kind = iota + 1
	lazy
	everyOther
	openSync
	mapped
	elsewhere
	flagged
	shared
	rangeOnly
	asyncMap
	inGrandchild
)

var nextID struct {
	sync.Mutex
	n uint64
}

func commitOf(kind Kind, fn func()) {
	nextID.Lock()
	nextID.n++
	id := nextID.n
	nextID.Unlock()
	Begin(kind, id)
	fn()
	End(kind, id)
}

// tracedProgram makes ten commits of each kind.
func tracedProgram(dir string) {
	f := create(dir, "plain", 0)
	o := create(dir, "osync", unix.O_DSYNC)
	other := create(filepath.Dir(dir), "beside", 0)
	page := unixMap(f)
	for i := range 10 {
		commitOf(plain, func() { f.Write([]byte("x")); f.Sync() })
		var late sync.WaitGroup
		commitOf(lazy, func() { late.Go(func() { f.Sync() }) })
		late.Wait()
		commitOf(everyOther, func() {
			if i%2 == 0 {
				unix.Fdatasync(int(f.Fd()))
			}
		})
		commitOf(openSync, func() { o.Write([]byte("x")) })
		commitOf(mapped, func() { page[0]++; unix.Msync(page, unix.MS_SYNC) })
		commitOf(asyncMap, func() { page[0]++; unix.Msync(page, unix.MS_ASYNC) })
		commitOf(elsewhere, func() { other.Sync() })
		commitOf(flagged, func() { unix.Pwritev2(int(f.Fd()), [][]byte{[]byte("y")}, 0, unix.RWF_DSYNC) })
		commitOf(rangeOnly, func() { unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE) })
	}
	var all sync.WaitGroup
	var one sync.Mutex
	for range 8 { // threads of their own
		all.Go(func() {
			for range 10 {
				commitOf(shared, func() { one.Lock(); f.Sync(); one.Unlock() })
			}
		})
	}
	all.Wait()
	commitOf(inGrandchild, func() { exec.Command("sync", "-d", filepath.Join(dir, "plain")).Run() })
}

func create(dir, name string, flags int) *os.File {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|flags, 0o600)
	if err != nil {
		panic(err)
	}
	return f
}

func unixMap(f *os.File) []byte {
	f.Truncate(4096)
	page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return page
}

func traceProgram(t *testing.T, wrap ...string) Report {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrap, program)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), tracedMark+"="+dir)
	cmd.Stderr = os.Stderr
	tracer, err := Trace(cmd, dir)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	tracer.Started()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	got, err := tracer.Wait()
	if err != nil {
		t.Skip("cannot trace here: ", err)
	}
	return got
}

func TestEveryWayToSyncIsCountedAndNoOther(t *testing.T) {
	got := traceProgram(t)
	for kind, want := range map[Kind]int{plain: 10, lazy: 0, everyOther: 5, openSync: 10, mapped: 10, asyncMap: 0, elsewhere: 0,
		flagged: 10, rangeOnly: 0, inGrandchild: 1} {
		count := got.Kinds[kind]
		if kind != inGrandchild && count.Commits != 10 {
			t.Errorf("kind %d: %d commits, want 10", kind, count.Commits)
		}
		if count.Durable != want {
			t.Errorf("kind %d: %d of %d durable, want %d", kind, count.Durable, count.Commits, want)
		}
	}
	if c := got.Kinds[shared]; c.Commits != 80 || c.Durable != 80 {
		t.Errorf("shared: %+v", c)
	}
	if got.Elsewhere != 10 || got.Ranges != 10 {
		t.Errorf("%d elsewhere, %d ranges, want 10 and 10", got.Elsewhere, got.Ranges)
	}
}

var straceSync = regexp.MustCompile(`\b(fsync|fdatasync|msync|syncfs)\((.*)`)

// strace, where there is one, sees the same calls of the same run.
func TestStraceCountsTheSame(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	file := filepath.Join(t.TempDir(), "strace")
	got := traceProgram(t, strace, "-f", "-qq", "-e", "trace=fsync,fdatasync,msync,syncfs", "-o", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for line := range strings.Lines(string(text)) {
		m := straceSync.FindStringSubmatch(line)
		if m == nil || (m[1] == "msync" && !strings.Contains(m[2], "MS_SYNC")) {
			continue
		}
		want[m[1]]++
	}
	for name, n := range want {
		have := got.Calls[name]
		if name == "fsync" {
			have += got.Elsewhere
		}
		if have != n {
			t.Errorf("%s: counted %d, strace %d", name, have, n)
		}
	}
	if want["fsync"] < 100 || want["fdatasync"] == 0 || want["msync"] == 0 {
		t.Errorf("strace saw %v", want)
	}
}

func TestAChildThatCannotBeTracedIsAnError(t *testing.T) {
	cmd := exec.Command("true") // never enters
	tracer, err := Trace(cmd, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	tracer.Started()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got, err := tracer.Wait(); err == nil || len(got.Kinds) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// Nor does the tracer wait for what an engine leaves running.
func TestWhatAChildLeavesBehindIsNotWaitedFor(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaverMark+"=1")
	tracer, err := Trace(cmd, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, _ := cmd.StdoutPipe()
	err = cmd.Start()
	tracer.Started()
	if err != nil {
		t.Fatal(err)
	}
	var left int
	fmt.Fscan(out, &left)
	cmd.Wait()
	defer unix.Kill(left, unix.SIGKILL)
	if left < 2 {
		t.Fatal("nothing was left behind")
	}
	if _, err := tracer.Wait(); err != nil {
		t.Skip("cannot trace here: ", err)
	}
	if err := unix.Kill(left, 0); err != nil {
		t.Errorf("it had ended: %v", err)
	}
}

const leaverMark = "CAIRN_BENCH_TEST_LEAVER"

// leave starts a process, prints its number and ends.
func leave() {
	if err := Enter(); err != nil {
		panic(err)
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Println(c.Process.Pid)
	os.Exit(0)
}
