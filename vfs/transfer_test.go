package vfs

import (
	"errors"
	"io"
	"testing"
	"time"
)

// choppy is a file whose calls transfer at most step bytes and fail as told.
type choppy struct {
	data []byte
	step int
	errs []error // of the next calls, which transfer nothing
}

func (c *choppy) next(p []byte) (int, error) {
	if len(c.errs) > 0 {
		err := c.errs[0]
		c.errs = c.errs[1:]
		return 0, err
	}
	return min(len(p), c.step), nil
}

func (c *choppy) WriteAt(p []byte, off int64) (int, error) {
	n, err := c.next(p)
	return copy(c.data[off:], p[:n]), err
}

func (c *choppy) ReadAt(p []byte, off int64) (int, error) {
	if off == int64(len(c.data)) {
		return 0, io.EOF
	}
	n, err := c.next(p)
	return copy(p[:n], c.data[off:]), err
}

func TestShortWritesAreContinued(t *testing.T) {
	c := &choppy{data: make([]byte, 10), step: 3}
	n, err := writeAll(c, []byte("0123456789"), 0)
	if n != 10 || err != nil || string(c.data) != "0123456789" {
		t.Fatalf("%d, %v, %q", n, err, c.data)
	}
}

func TestFailedWriteSaysHowMuch(t *testing.T) {
	broken := errors.New("broken")
	c := &failsAfter{choppy{data: make([]byte, 10), step: 3}, 2, broken}
	n, err := writeAll(c, []byte("0123456789"), 0)
	if n != 6 || err != broken {
		t.Fatalf("%d, %v", n, err)
	}
	n, err = writeAll(&choppy{data: make([]byte, 10)}, []byte("x"), 0)
	if n != 0 || err != io.ErrShortWrite {
		t.Fatalf("a file that takes nothing: %d, %v", n, err)
	}
}

type failsAfter struct {
	choppy
	calls int
	err   error
}

func (f *failsAfter) WriteAt(p []byte, off int64) (int, error) {
	if f.calls--; f.calls < 0 {
		return 0, f.err
	}
	return f.choppy.WriteAt(p, off)
}

func TestShortReadsAreContinued(t *testing.T) {
	c := &choppy{data: []byte("0123456789"), step: 4}
	buf := make([]byte, 12)
	if n, err := readAll(c, buf[:10], 0); n != 10 || err != nil || string(buf[:10]) != "0123456789" {
		t.Fatalf("%d, %v, %q", n, err, buf)
	}
	if n, err := readAll(c, buf, 2); n != 8 || err != io.EOF {
		t.Fatalf("%d, %v", n, err)
	}
	c.step = 0
	if n, err := readAll(c, buf, 2); n != 0 || err != io.ErrNoProgress {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestHolderRoundTrip(t *testing.T) {
	since := time.Unix(1700000000, 0).UTC()
	pid, host, at := decodeHolder(encodeHolder(4711, "host.example", since))
	if pid != 4711 || host != "host.example" || !at.Equal(since) {
		t.Fatal(pid, host, at)
	}
	if _, host, _ := decodeHolder(encodeHolder(1, "two words", since)); host != "?" {
		t.Fatalf("%q", host)
	}
}

func TestHolderFromHostileFile(t *testing.T) {
	for _, line := range []string{
		"", "\n", "1 h 2023-11-14T22:13:20Z", "x h 2023-11-14T22:13:20Z\n", "-1 h 2023-11-14T22:13:20Z\n",
		"0 h 2023-11-14T22:13:20Z\n", "1 h yesterday\n", "1 \x1b[31m 2023-11-14T22:13:20Z\n", "1 h 2023-11-14T22:13:20Z more\n",
		"99999999999999999999999 h 2023-11-14T22:13:20Z\n", "1  2023-11-14T22:13:20Z\n",
	} {
		if pid, host, since := decodeHolder([]byte(line)); pid != 0 || host != "" || !since.IsZero() {
			t.Errorf("%q gives %d %q %v", line, pid, host, since)
		}
	}
}

func TestHolderGolden(t *testing.T) {
	got := encodeHolder(4711, "h", time.Unix(1700000000, 0).UTC())
	if string(got) != "4711 h 2023-11-14T22:13:20Z\n" {
		t.Fatalf("%q", got)
	}
}

// FuzzHolder: whatever a lock file holds, what is shown of it was written by
// encodeHolder or could have been.
func FuzzHolder(f *testing.F) {
	f.Add([]byte("4711 h 2023-11-14T22:13:20Z\n"))
	f.Add([]byte("1 \x00 x\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		pid, host, since := decodeHolder(line)
		if pid == 0 {
			return
		}
		again, sameHost, sameTime := decodeHolder(encodeHolder(pid, host, since))
		if again != pid || sameHost != host || !sameTime.Equal(since.Truncate(time.Second)) {
			t.Fatalf("%q: %d %q %v became %d %q %v", line, pid, host, since, again, sameHost, sameTime)
		}
	})
}

// TestPatiently: what may pass is tried again, what does not is the error at once.
func TestPatiently(t *testing.T) {
	busy, gone := errors.New("busy"), errors.New("gone")
	for _, c := range []struct {
		fails []error
		want  error
		tries int
	}{{nil, nil, 1}, {[]error{busy, busy}, nil, 3}, {[]error{gone}, gone, 1}, {[]error{busy, gone, busy}, gone, 2}} {
		tries := 0
		err := patiently(func(err error) bool { return err == busy }, func() error {
			if tries++; tries > len(c.fails) {
				return nil
			}
			return c.fails[tries-1]
		})
		if err != c.want || tries != c.tries {
			t.Errorf("%v: %v after %d tries, want %v after %d", c.fails, err, tries, c.want, c.tries)
		}
	}
}
