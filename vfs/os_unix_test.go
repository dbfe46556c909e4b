//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cairndb/cairn/vfs"
)

// TestMain: with CAIRN_LOCK set this program is the other process of a lock test.
func TestMain(m *testing.M) {
	if name := os.Getenv("CAIRN_LOCK"); name != "" {
		holdLock(name)
		return
	}
	os.Exit(m.Run())
}

// holdLock reports on stdout and holds until it is killed or stdin ends.
func holdLock(name string) {
	if _, err := vfs.OS().Lock(name, false); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(0) // without Close: the line stays in the file
}

func startHolder(t *testing.T, name string) (cmd *exec.Cmd, said string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CAIRN_LOCK="+name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	said, _ = bufio.NewReader(stdout).ReadString('\n')
	return cmd, strings.TrimSpace(said)
}

func TestLockAcrossProcesses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	cmd, said := startHolder(t, name)
	if said != "held" {
		t.Fatal(said)
	}
	err := lockOnce(name, false)
	e := (*vfs.LockedError)(nil)
	if !errors.As(err, &e) || e.PID != cmd.Process.Pid || e.Since.IsZero() {
		t.Fatalf("%v, holder is %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	l, err := vfs.OS().Lock(name, false)
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	defer l.Close()
	if _, said := startHolder(t, name); !strings.Contains(said, fmt.Sprintf("process %d ", os.Getpid())) {
		t.Fatalf("the other process says %q", said)
	}
}

// TestDeadHolderIsNotNamed: beside those who share the lock, a writer that was killed was said to hold it.
func TestDeadHolderIsNotNamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	cmd, said := startHolder(t, name)
	if said != "held" {
		t.Fatal(said)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if line, _ := os.ReadFile(name); !strings.HasPrefix(string(line), fmt.Sprint(cmd.Process.Pid)) {
		t.Fatalf("left behind: %q", line)
	}
	shared, err := vfs.OS().Lock(name, true)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	e := (*vfs.LockedError)(nil)
	if err := lockOnce(name, false); !errors.As(err, &e) || e.PID != 0 || e.Host != "" || !e.Since.IsZero() {
		t.Errorf("process %d is dead: %v", cmd.Process.Pid, err)
	}
}

// TestLockNotInherited: a child that outlives us in the same descriptors would keep
// a store locked.
func TestLockNotInherited(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	l, err := vfs.OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "30")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lockOnce(name, false); err != nil {
		t.Fatal(err)
	}
}

// TestLockFileReplaced: the lock that counts is that of the inode under the name.
func TestLockFileReplaced(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	l, err := vfs.OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := lockOnce(name, false); err != nil {
		t.Fatalf("a new lock file: %v", err)
	}
}

func TestLockFileContents(t *testing.T) {
	name := filepath.Join(t.TempDir(), "LOCK")
	l, err := vfs.OS().Lock(name, false)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := os.ReadFile(name)
	line, rest, _ := strings.Cut(string(all), "\x00")
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != fmt.Sprint(os.Getpid()) {
		t.Fatalf("%q", line)
	}
	if line, _, _ := strings.Cut(rest, "\x00"); line != "" || len(all) != 512 {
		t.Fatalf("%d bytes, and behind the line: %q", len(all), rest)
	}
	if _, err := time.Parse(time.RFC3339, fields[2]); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if all, _ := os.ReadFile(name); strings.Trim(string(all), "\x00") != "" {
		t.Fatalf("left behind: %q", strings.Trim(string(all), "\x00"))
	}
	if info, err := vfs.OS().Stat(name); err != nil || runtime.GOOS == "linux" && info.Allocated > 0 {
		t.Fatalf("a lock nobody holds takes %d bytes: %v", info.Allocated, err)
	}
	if err := os.WriteFile(name, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := lockOnce(name, true); err != nil {
		t.Fatal(err)
	}
	if line, _ := os.ReadFile(name); string(line) != "kept" {
		t.Fatalf("a shared lock wrote %q", line)
	}
}

func TestOpenRefusesFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(name, 0o644); err != nil {
		t.Skip(err)
	}
	refusesAtOnce(t, name, "FIFO")
}

func TestOpenRefusesSocket(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	refusesAtOnce(t, name, "socket")
}

func TestOpenRefusesDevice(t *testing.T) { refusesAtOnce(t, os.DevNull, "device") }

func refusesAtOnce(t *testing.T, name, what string) {
	t.Helper()
	for how, open := range openers {
		done := make(chan error, 1)
		go func() { done <- open(name) }()
		select {
		case err := <-done:
			if !errors.Is(err, vfs.ErrNotRegular) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s of a %s: %v", how, what, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s of a %s hangs", how, what)
		}
	}
}

func TestIsNoSpaceOfSystem(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if !vfs.IsNoSpace(&fs.PathError{Op: "write", Path: "a", Err: errno}) {
			t.Errorf("%v is not recognised", errno)
		}
	}
	if vfs.IsNoSpace(syscall.EIO) {
		t.Error("EIO is taken for a full disk")
	}
}

// TestRealFullDevice needs no privilege: /dev/full says ENOSPC to every write.
func TestRealFullDevice(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); !vfs.IsNoSpace(err) {
		t.Fatal(err)
	}
}

// TestSharedLockReadOnly runs itself as an unprivileged user where it is root, whom
// no permission stops.
func TestSharedLockReadOnly(t *testing.T) {
	if os.Getuid() == 0 {
		rerunAs(t, 65534)
		return
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "LOCK")
	if err := os.WriteFile(name, nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o755)
	if err := lockOnce(name, true); err != nil {
		t.Fatal(err)
	}
	err := lockOnce(name, false)
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "lock") {
		t.Fatalf("exclusive lock without permission: %v", err)
	}
	if err := lockOnce(filepath.Join(dir, "NEW"), true); !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("a lock file in a directory without permission: %v", err)
	}
	if _, err := vfs.OS().OpenReadWrite(name); !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
}

func rerunAs(t *testing.T, uid uint32) {
	program := filepath.Join(t.TempDir(), "test")
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(program); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestUnlink: the name is gone at once, the space when free is called.
func TestUnlink(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	before := openFiles(t)
	free, err := vfs.OS().(vfs.Unlinker).Unlink(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Unlink: %v", err)
	}
	if n := openFiles(t); n != before+1 {
		t.Errorf("%d files are open, were %d: nothing keeps the space", n, before)
	}
	free()
	if n := openFiles(t); n != before {
		t.Errorf("%d files are open after free, were %d", n, before)
	}
	for range 2 {
		if _, err := vfs.OS().(vfs.Unlinker).Unlink(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is not there: %v", err)
		}
	}
	if n := openFiles(t); n != before {
		t.Errorf("%d files are open after errors, were %d", n, before)
	}
}

// openFiles counts the files this process has open, as far as it can be told.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("no list of open files here:", err)
	}
	return len(entries)
}

// TestFreeSpaceOfTheSystem: what can be preallocated is free, and is not free any more.
func TestFreeSpaceOfTheSystem(t *testing.T) {
	dir := t.TempDir()
	n, known := vfs.FreeSpace(vfs.OS(), dir)
	if told := runtime.GOOS == "linux" || runtime.GOOS == "darwin"; !known && told {
		t.Fatal("the system tells, and it is not known")
	} else if !known {
		t.Skip("SKIPPED: the system does not say how much space is free")
	}
	f, err := vfs.OS().Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	err = f.Preallocate(0, min(n/2, 1<<20))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("SKIPPED: nothing can be preallocated in ", dir)
	}
	if err != nil || n <= 0 {
		t.Errorf("half of %d bytes free: %v", n, err)
	}
	const size = 64 << 20
	less := n < 4*size                       // nobody's disk is to be filled
	for try := 0; !less && try < 10; try++ { // others may give space back meanwhile
		name := filepath.Join(dir, "large")
		before, _ := vfs.FreeSpace(vfs.OS(), dir)
		large, err := vfs.OS().Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := large.Preallocate(0, size); err != nil {
			t.Fatal(err)
		}
		after, _ := vfs.FreeSpace(vfs.OS(), dir)
		less = before-after > size/2 && before-after < 4*size
		large.Close()
		vfs.OS().Remove(name)
	}
	if !less {
		t.Errorf("%d bytes were taken, and nothing is known of it", size)
	}
	if n, known := vfs.FreeSpace(vfs.OS(), filepath.Join(dir, "missing")); known {
		t.Errorf("%d bytes free where nothing is", n)
	}
}

// TestKeptDirectory: whoever has the lock can sync its directory without a name or a descriptor, and no other one.
func TestKeptDirectory(t *testing.T) {
	dir := t.TempDir()
	name, away := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, d := range []string{name, away} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := vfs.OS().Lock(filepath.Join(name, "LOCK"), false)
	if err != nil {
		t.Fatal(err)
	}
	k := lock.(vfs.DirKeeper)
	if err := k.SyncKept(name); !errors.Is(err, vfs.ErrNotAttempted) {
		t.Errorf("nothing is kept: %v", err)
	}
	if err := errors.Join(k.KeepDir(away), os.Rename(name, name+"2"), os.Rename(away, name)); err != nil {
		t.Fatal(err)
	}
	if err := k.KeepDir(name); err == nil {
		t.Error("kept a directory that the lock file is not in")
	}
	if err := errors.Join(os.Rename(name, away), os.Rename(name+"2", name), k.KeepDir(name+"/"), k.KeepDir(name), os.Rename(name, name+"2")); err != nil {
		t.Fatal(err)
	}
	if err := k.SyncKept(name); err != nil {
		t.Errorf("kept, and renamed since: %v", err)
	}
	if err := k.SyncKept(away); !errors.Is(err, vfs.ErrNotAttempted) {
		t.Errorf("another directory: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := k.SyncKept(name); err == nil {
		t.Error("synced after the lock was let go of")
	}
}
