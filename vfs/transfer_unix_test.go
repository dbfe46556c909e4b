//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs

import (
	"slices"
	"syscall"
	"testing"
)

func TestTransientErrorsAreRetried(t *testing.T) {
	errs := []error{syscall.EAGAIN, syscall.EINTR, syscall.EAGAIN}
	c := &choppy{data: make([]byte, 4), step: 2, errs: slices.Clone(errs)}
	if n, err := writeAll(c, []byte("abcd"), 0); n != 4 || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
	c.errs = errs
	buf := make([]byte, 4)
	if n, err := readAll(c, buf, 0); n != 4 || err != nil || string(buf) != "abcd" {
		t.Fatalf("read: %d, %v, %q", n, err, buf)
	}
	c.errs = slices.Repeat([]error{syscall.EAGAIN}, 1000)
	if _, err := writeAll(c, []byte("abcd"), 0); err != syscall.EAGAIN {
		t.Fatalf("for ever unavailable: %v", err)
	}
	c.errs = []error{syscall.EIO}
	if n, err := writeAll(c, []byte("abcd"), 0); n != 0 || err != syscall.EIO || len(c.errs) != 0 {
		t.Fatalf("EIO: %d, %v", n, err)
	}
}
