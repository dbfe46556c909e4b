package wal

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cairndb/cairn/internal/frame"
)

// If nothing can be stored in the file the segment goes on in ordinary memory, at the same
// address: readers notice nothing, and what is appended is written.
func TestDetach(t *testing.T) {
	s, name := onDisk(t, 4<<20, true)
	for i := range 100 {
		commit(s, uint64(i+1), 0, strings.Repeat("a", 100+i))
	}
	check(t, s.WriteOut())
	tail, _ := s.Tail()
	want := bytes.Clone(s.Buffer()[:tail.Offset()])
	buf := s.Buffer()

	var readers sync.WaitGroup
	var stop atomic.Bool
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				if !bytes.Equal(buf[:len(want)], want) {
					t.Error("a reader has seen something else")
					return
				}
			}
		})
	}
	check(t, unix.Mprotect(buf, unix.PROT_READ)) // every store is a fault, as on a full disk
	for i, size := range []int{50, 3000, mostPiece + 10, 50} {
		commit(s, uint64(i+101), 0, strings.Repeat("b", size))
	}
	stop.Store(true)
	readers.Wait()
	if s.mapped.Load() || !s.Mapped() || &s.Buffer()[0] != &buf[0] {
		t.Error("still mapped, or elsewhere")
	}
	if s.Written() != tail.Offset() {
		t.Errorf("written to %d, want %d: what could not be stored is not in the file", s.Written(), tail.Offset())
	}
	check(t, s.WriteOut())
	same(t, s, name)
	check(t, s.Sync())
	check(t, s.Intact())
	check(t, s.Close())
	s.Unmap()
}

// A frame that was staged is taken back from the file also where its page cannot be stored to by then.
func TestUnsayDetaches(t *testing.T) {
	s, name := onDisk(t, 1<<20, true)
	commit(s, 1, 0, "a")
	check(t, s.WriteOut())
	at, end := s.Stage(testHeader(2), []byte("this is to be taken back"))
	check(t, unix.Mprotect(s.Buffer(), unix.PROT_READ))
	s.Unsay(at)
	inFile, err := os.ReadFile(name)
	check(t, err)
	if s.mapped.Load() {
		t.Error("still mapped")
	}
	for where, b := range map[string][]byte{"memory": s.Buffer(), "the file": inFile} {
		if _, ok := frame.DecodeHeader(b[at-frame.HeaderBytes:end], s.ident, at-frame.HeaderBytes); ok {
			t.Error("the frame is still in", where)
		}
	}
	check(t, s.Close())
	s.Unmap()
}

// Where somebody has cut the file what was committed is gone from memory, and nothing can be
// put in its place: the process ends, as if it had been killed.
func TestCutFileEndsTheProcess(t *testing.T) {
	if os.Getenv("CAIRN_CUT") != "" {
		s, name := onDisk(t, 1<<20, true)
		commit(s, 1, 0, "a")
		check(t, os.Truncate(name, 0))
		commit(s, 2, 0, "b")
		t.Fatal("survived")
	}
	onDisk(t, 1<<20, true) // or skip
	cmd := exec.Command(os.Args[0], "-test.run=^TestCutFileEndsTheProcess$")
	cmd.Env = append(os.Environ(), "CAIRN_CUT=1", "TMPDIR="+t.TempDir()) // what dies leaves its files
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("unexpected fault address")) || bytes.Contains(out, []byte("survived")) {
		t.Errorf("%v\n%s", err, out)
	}
}
