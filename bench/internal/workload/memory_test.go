package workload

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// A small set, as the user's own records may be, is not a quarter of a memory that
// engines refuse: they get the least, and the conditions say so.
func TestSmallSetsGetTheLeastMemory(t *testing.T) {
	w, err := Find("memory")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n      int
		memory int64
		says   string
	}{
		{1000, 1 << 20, "1 MiB, the least every engine takes, 101 % of the set: TOO SMALL A SET"},
		{8000, 8000 * (1024 + 16) / 4, "1 MiB, a quarter of the set"},
	} {
		p := w.Cells(Scale{Counts: []int{c.n}, ValueBytes: 1024, Sync: []bool{false}, Seed: 1})[0]
		if text := strings.Join(w.Conditions(p), "\n"); p.Memory != c.memory || !strings.Contains(text, c.says) {
			t.Errorf("%d keys: %d B of memory, want %d\n%s", c.n, p.Memory, c.memory, text)
		}
	}
}

// Where the kernel bounds it the process has more than its engine, and the Go runtime has a part of
// that: an engine on the Go heap is not kept collecting by the data that are to be written.
func TestTheGoRuntimeHasMemoryForTheData(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	d, err := engine.Find("goleveldb")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory", "lean"} {
		w, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p := w.Cells(Scale{Sync: []bool{false}, Seed: 1})[0]
		bound(NewRecorder(t.TempDir()), d, p, w.Columns)
		if got, want := debug.SetMemoryLimit(-1), p.Memory*8/10+MemoryOfItsOwn/2; got != want {
			t.Errorf("%s: a limit of %d bytes, want %d", name, got, want)
		}
		says := fmt.Sprintf("80 %% of it and %d MiB as GOMEMLIMIT", MemoryOfItsOwn/2>>20)
		if text := strings.Join(w.Conditions(p), "\n"); !strings.Contains(text, says) {
			t.Errorf("%s: %q is not among\n%s", name, says, text)
		}
	}
}

// Reading nothing from the device is the best figure there is, not none: a round without one
// left the other rounds to be the store's median, or made a worse store the best.
func TestReadingNothingIsAFigure(t *testing.T) {
	before := readUsage().read
	if before < 0 {
		t.Skip("SKIPPED: this system does not count what a process reads of the device")
	}
	rec := NewRecorder(t.TempDir())
	recordRead(rec, before, 1<<40)
	if got, known := rec.Metrics[ReadColumn]; !known || got > 1 || len(rec.NA) != 0 {
		t.Errorf("what has read nothing: %v, %v", rec.Metrics, rec.NA)
	}
}
