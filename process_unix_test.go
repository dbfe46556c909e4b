//go:build unix

package cairn_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// children are what the test binary does when it runs itself again.
var children = map[string]func(dir string) error{
	// hold opens the store, says so, and waits for its standard input to end.
	"hold": func(dir string) error {
		db, err := cairn.Open(dir, nil)
		if err != nil {
			return err
		}
		if err := db.Put(b("child"), b("was here")); err != nil {
			return err
		}
		fmt.Println("CHILD: open")
		io.Copy(io.Discard, os.Stdin)
		return db.Close()
	},
	"write": func(dir string) error {
		db, err := cairn.Open(dir, nil)
		if err != nil {
			return err
		}
		return errors.Join(db.Put(b("child"), b("was here")), db.Close())
	},
	"read": func(dir string) error {
		db, err := cairn.Open(dir, &cairn.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		v, err := db.Get(b("a"))
		if err == nil && string(v) != "1" {
			err = fmt.Errorf("a is %q", v)
		}
		return errors.Join(err, db.Close())
	},
	// limited writes until files may grow no further.
	"limited": func(dir string) error {
		db, err := cairn.Open(dir, &cairn.Options{Memory: 1 << 20})
		if err != nil {
			return err
		}
		defer db.Close()
		random, v := rand.NewChaCha8([32]byte{}), make([]byte, 4000)
		for i := 0; i < 2000 && err == nil; i++ {
			random.Read(v) // does not compress
			err = db.Put(fmt.Appendf(nil, "key%05d", i), v)
		}
		if _, e := db.Get(b("key00000")); e != nil && !errors.Is(err, syscall.EFBIG) {
			return fmt.Errorf("cannot read after %w: %v", err, e)
		}
		return err
	},
}

// addChild gives children one more, of a name that none has.
func addChild(name string, do func(dir string) error) {
	if children[name] != nil {
		panic("two children are called " + name)
	}
	children[name] = do
}

// TestChild is not a test but what children run in.
func TestChild(t *testing.T) {
	name := os.Getenv("CAIRN_CHILD")
	if name == "" {
		t.Skip("runs in child processes only")
	}
	switch err := children[name](os.Getenv("CAIRN_CHILD_DIR")); {
	case err == nil:
		fmt.Println("CHILD: done")
	case errors.Is(err, fs.ErrPermission):
		fmt.Println("CHILD: permission:", err)
	case errors.Is(err, syscall.EROFS):
		fmt.Println("CHILD: read-only file system:", err)
	case errors.Is(err, cairn.ErrNoSpace):
		fmt.Println("CHILD: no space:", err)
	default:
		fmt.Println("CHILD: other:", err)
	}
}

// child prepares the test binary to run as a child, from a place that every user
// can reach.
func child(t *testing.T, name, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	c := exec.Command(self, "-test.run=^TestChild$", "-test.v")
	c.Env = append(os.Environ(), "CAIRN_CHILD="+name, "CAIRN_CHILD_DIR="+dir)
	c.Stderr = os.Stderr
	return c
}

// unprivileged makes c run as nobody, if this process is root: root may do
// anything, and a test of permissions would show nothing.
func unprivileged(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	place := publicDir(t)
	self := filepath.Join(place, "self")
	data, err := os.ReadFile(c.Path)
	check(t, err)
	check(t, os.WriteFile(self, data, 0o755))
	check(t, os.Chmod(self, 0o755))
	c.Path, c.Args[0], c.Dir = self, self, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// publicDir returns a directory that every user can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cairn-public")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	return dir
}

// said runs c and returns what it says after "CHILD: ".
func said(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.Output()
	for line := range strings.Lines(string(out)) {
		if s, ok := strings.CutPrefix(line, "CHILD: "); ok {
			return strings.TrimSpace(s)
		}
	}
	t.Fatalf("the child said %q, %v", out, err)
	return ""
}

// TestNoPermission: Open says what it may not do, and changes nothing; reading needs
// no right to write.
func TestNoPermission(t *testing.T) {
	dir := filepath.Join(publicDir(t), "store")
	db, err := cairn.Open(dir, nil)
	check(t, err)
	check(t, db.Put(b("a"), b("1")))
	check(t, db.Close())
	run := func(name, path string) string {
		c := child(t, name, path)
		unprivileged(t, c)
		return said(t, c)
	}
	modes := func(files, directory fs.FileMode) {
		entries, err := os.ReadDir(dir)
		check(t, err)
		for _, e := range entries {
			check(t, os.Chmod(filepath.Join(dir, e.Name()), files))
		}
		check(t, os.Chmod(dir, directory))
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	before := contents(t, dir)
	for _, c := range []struct {
		files, directory fs.FileMode
		read, write      string
	}{
		{0o444, 0o555, "done", "permission"},
		{0o000, 0o555, "permission", "permission"},
		{0o444, 0o000, "permission", "permission"},
	} {
		modes(c.files, c.directory)
		for name, want := range map[string]string{"read": c.read, "write": c.write} {
			got := run(name, dir)
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s with modes %o and %o: %s; want %s", name, c.files, c.directory, got, want)
			}
			if want != "done" && !strings.Contains(got, dir) {
				t.Errorf("%s: %q does not say where", name, got)
			}
		}
		modes(0o644, 0o755)
		unchanged(t, dir, before)
	}
	parent := publicDir(t)
	check(t, os.Chmod(parent, 0o555))
	if got := run("write", filepath.Join(parent, "new")); !strings.HasPrefix(got, "permission") {
		t.Errorf("a new store where nothing may be made: %s", got)
	}
}

// TestSecondProcess: another process is refused, and told who has the store.
func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	c := child(t, "hold", dir)
	in, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "CHILD: open"; {
	}
	for _, readOnly := range []bool{false, true} {
		_, err := cairn.Open(dir, &cairn.Options{ReadOnly: readOnly, FS: plainFS{vfs.OS()}})
		var l *cairn.LockedError
		if !errors.As(err, &l) || l.PID != c.Process.Pid || l.Since.IsZero() {
			t.Errorf("read-only %v: %v; the child is process %d", readOnly, err, c.Process.Pid)
		}
	}
	check(t, c.Process.Kill()) // its lock goes with it
	c.Wait()
	in.Close()
	db := openAt(t, dir, nil)
	wantValue(t, db, "child", "was here")
}

// TestFileSizeLimit: RLIMIT_FSIZE is one more way to run out of room.
func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	c := child(t, "limited", dir)
	c.Args = append([]string{"sh", "-c", `ulimit -f 64; exec "$0" "$@"`}, append([]string{c.Path}, c.Args[1:]...)...)
	sh, err := exec.LookPath("sh")
	check(t, err)
	c.Path = sh
	got := said(t, c)
	if !strings.HasPrefix(got, "no space") || !strings.Contains(got, syscall.EFBIG.Error()) {
		t.Errorf("the child said: %s", got)
	}
	if !strings.Contains(got, dir) {
		t.Errorf("%s does not say where", got)
	}
	db := openAt(t, dir, nil)
	_, err = db.Verify(t.Context())
	check(t, err)
}

// TestSmallFileSystem and the read-only one run on a real tmpfs, where root may
// mount one.
func TestSmallFileSystem(t *testing.T) {
	dir := mountTmpfs(t, "size=3m")
	store := filepath.Join(dir, "store")
	got := said(t, child(t, "limited", store))
	if !strings.HasPrefix(got, "no space") {
		t.Fatalf("the child said: %s", got)
	}
	// Nothing is lost. To repair the log takes space, so that may have to come first.
	before := contents(t, store)
	if db, err := cairn.Open(store, &cairn.Options{Memory: 1 << 20}); err == nil {
		check(t, db.Close())
	} else {
		expect(t, err, cairn.ErrNoSpace)
		unchanged(t, store, before)
	}
	reader := openAt(t, store, &cairn.Options{Memory: 1 << 20, ReadOnly: true}) // takes none
	_, err := reader.Get(b("key00000"))
	check(t, err)
	check(t, reader.Close())
	remount(t, dir, "size=32m")
	db := openAt(t, store, &cairn.Options{Memory: 1 << 20})
	_, err = db.Get(b("key00000"))
	check(t, err)
	_, err = db.Verify(t.Context())
	check(t, err)
	check(t, db.Close())
}

func TestRemountedReadOnly(t *testing.T) {
	dir := mountTmpfs(t, "size=16m")
	store := filepath.Join(dir, "store")
	db, err := cairn.Open(store, nil)
	check(t, err)
	check(t, db.Put(b("a"), b("1")))
	check(t, db.Close())
	remount(t, dir, "ro")
	before := contents(t, dir)
	if got := said(t, child(t, "read", store)); got != "done" {
		t.Errorf("reading: %s", got)
	}
	if got := said(t, child(t, "write", store)); !strings.HasPrefix(got, "read-only file system") {
		t.Errorf("writing: %s", got)
	}
	if got := said(t, child(t, "write", filepath.Join(dir, "new"))); !strings.HasPrefix(got, "read-only file system") {
		t.Errorf("making a store: %s", got)
	}
	unchanged(t, dir, before)
}

func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("SKIPPED: mounting needs Linux and root")
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: cannot mount here: %s", out)
	}
	t.Cleanup(func() { whenFree(t, "umount", dir) })
	return dir
}

// TestNoLimit: a file system that has no limit, and says that no block is free, is not full.
func TestNoLimit(t *testing.T) {
	db := openAt(t, filepath.Join(mountTmpfs(t, "size=0"), "store"), nil)
	for i := range 300 {
		check(t, db.Put(fmt.Append(nil, i), noise(10_000)))
	}
}

func remount(t *testing.T, dir, option string) {
	t.Helper()
	whenFree(t, "mount", "-o", "remount,"+option, dir)
}

// whenFree runs a command about a mounted file system, again while it is busy: Close lets go
// of files that it has removed some milliseconds later.
func whenFree(t *testing.T, name string, args ...string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command(name, args...).CombinedOutput()
		if err == nil {
			return
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("%s: %s", name, out)
			return
		}
	}
}

// TestReadsOnAFullTmpfs: a store that was closed can be read where there is no space at all.
func TestReadsOnAFullTmpfs(t *testing.T) {
	dir := mountTmpfs(t, "size=8m")
	store := filepath.Join(dir, "store")
	db := openAt(t, store, &cairn.Options{Memory: 4 << 20})
	put(t, db, "a", "1")
	check(t, db.Close())
	fillTo(t, filepath.Join(dir, "fill"))
	reader := openAt(t, store, &cairn.Options{Memory: 4 << 20, ReadOnly: true})
	wantValue(t, reader, "a", "1")
	check(t, reader.Close())
}

// fillTo makes a file that takes what space there is, down to the last byte, and returns its size.
func fillTo(t *testing.T, name string) (size int64) {
	t.Helper()
	f, err := os.Create(name)
	check(t, err)
	defer f.Close()
	for _, piece := range []int{1 << 16, 128} {
		for err = nil; err == nil; {
			var n int
			n, err = f.Write(make([]byte, piece))
			size += int64(n)
		}
		expect(t, err, syscall.ENOSPC)
	}
	return size
}
