//go:build unix

package engine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// other is a second process with a store: it does what lines on its standard input
// say and answers each with a line.
type other struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startOther(t *testing.T, d Driver, dir string, mode string) *other {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOtherProcess$")
	cmd.Env = append(os.Environ(), "ENGINE_TEST_OTHER="+strings.Join([]string{d.Info.Name, mode, dir}, ","))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	o := &other{cmd, in, bufio.NewReader(out)}
	if got := o.answer(); got != "open" {
		t.Fatalf("the other process says %q", got)
	}
	return o
}

func (o *other) answer() string {
	line, _ := o.out.ReadString('\n')
	return strings.TrimSpace(line)
}

func (o *other) do(line string) string {
	fmt.Fprintln(o.in, line)
	return o.answer()
}

// TestOtherProcess is that process.
func TestOtherProcess(t *testing.T) {
	order := strings.SplitN(os.Getenv("ENGINE_TEST_OTHER"), ",", 3)
	if len(order) < 3 {
		t.Skip("only for other tests")
	}
	d, err := Find(order[0])
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(order[2], Options{Sync: order[1] == "sync", ReadOnly: order[1] == "read"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("open")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, i := "", 0
		fmt.Sscan(lines.Text(), &verb, &i)
		switch verb {
		case "put":
			err = s.Put(testKey(i), testValue(i))
		case "get":
			err = s.Get(testKey(i), func(v []byte) error { return same(testKey(i), v) })
		}
		fmt.Println(verb, i, err)
	}
	check(t, s.Close())
}

func TestSecondProcessIsRefusedOrReads(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		dir := t.TempDir()
		if !d.Info.Can(CanProcesses) {
			startOther(t, d, dir, "off")
			if _, err := d.Open(dir, Options{}); !errors.Is(err, ErrBusy) {
				t.Errorf("a second process gets %v, want ErrBusy", err)
			}
			return
		}
		w, err := d.Open(dir, Options{})
		check(t, err)
		defer w.Close()
		check(t, w.Put(testKey(0), testValue(0)))
		if d.Info.Name != "lmdb" { // which has writers in many processes take turns
			if _, err := d.Open(dir, Options{}); !errors.Is(err, ErrBusy) {
				t.Errorf("a second writer gets %v, want ErrBusy", err)
			}
		}
		r := startOther(t, d, dir, "read")
		for i := range 20 {
			if got, want := r.do(fmt.Sprint("get ", i)), fmt.Sprint("get ", i, " <nil>"); got != want {
				t.Errorf("the reader answers %q, want %q", got, want)
			}
			if got := r.do(fmt.Sprint("get ", i+1)); got != fmt.Sprint("get ", i+1, " ", ErrNotFound) {
				t.Errorf("before the put the reader answers %q", got)
			}
			check(t, w.Put(testKey(i+1), testValue(i+1)))
		}
	})
}

// What was acknowledged as durable is there after a kill, and the store opens.
func TestSyncedWritesSurviveAKill(t *testing.T) {
	natives(t, func(t *testing.T, d Driver) {
		dir := t.TempDir()
		o := startOther(t, d, dir, "sync")
		for i := range 30 {
			if got, want := o.do(fmt.Sprint("put ", i)), fmt.Sprint("put ", i, " <nil>"); got != want {
				t.Fatalf("%q, want %q", got, want)
			}
		}
		check(t, o.cmd.Process.Signal(syscall.SIGKILL))
		o.cmd.Wait()
		s, err := d.Open(dir, Options{Sync: true})
		check(t, err)
		defer s.Close()
		for i := range 30 {
			check(t, s.Get(testKey(i), func(v []byte) error { return same(testKey(i), v) }))
		}
		check(t, s.Put(testKey(30), testValue(30)))
	})
}
