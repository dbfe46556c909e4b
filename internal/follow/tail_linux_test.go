package follow

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/wal"
)

// maps returns how many mappings of a file the process has for reading only, or waits until it has none.
func (w *written) maps(num uint64, none bool) (n int) {
	for range 500 {
		b, err := os.ReadFile("/proc/self/maps")
		w.ok(err)
		n = 0
		for line := range strings.Lines(string(b)) {
			if strings.Contains(line, w.name(num)) && strings.Contains(line, " r--s ") {
				n++
			}
		}
		if n == 0 || !none {
			break
		}
		time.Sleep(10 * time.Millisecond) // it is ended by a goroutine
	}
	return n
}

// TestMappedSegmentLasts: a memtable over a segment's file can be read when the tail has left the segment, the
// file been removed and its writer closed it; the mapping ends with the last of them.
func TestMappedSegmentLasts(t *testing.T) {
	mustMap(t)
	w := newWritten(t, true)
	w.segment(1, 4<<20, 0, 0)
	for w.next < 20_000 { // several memtables
		w.ok(w.tail.read(&w.state, w.commit(100, 30)))
	}
	last := w.next - 1
	w.holds(1, last)
	if n := len(w.tail.layers); n < 2 || w.maps(1, false) != 1 {
		t.Fatalf("%d memtables over %d mappings, want several over one", n, w.maps(1, false))
	}
	held := w.tail.layers[1].Mem
	held.Ref()
	first := w.seg
	w.rotate(2, 64<<10)
	w.ok(w.tail.read(&w.state, w.commit(1, 10)))
	first.Drop()
	w.ok(w.fs.Remove(w.name(1)))
	w.state.Segments, w.state.LogStart = w.state.Segments[1:], 2
	w.tail.cut(&w.state)
	w.holds(last+1, last+1)
	if n := w.maps(1, false); n != 1 {
		t.Fatalf("%d mappings while a memtable is read", n)
	}
	if r := held.Record(held.Len() - 1); len(r.Value) != 30 {
		t.Errorf("a value of %d bytes", len(r.Value))
	}
	held.Unref()
	if n := w.maps(1, true); n != 0 {
		t.Errorf("%d mappings when nobody reads any more", n)
	}
	w.tail.drop()
	if n := w.maps(2, true); n != 0 {
		t.Errorf("%d mappings when the tail is dropped", n)
	}
}

// TestCutSegmentIsNotMapped: to read behind the end of a mapped file is a memory fault.
func TestCutSegmentIsNotMapped(t *testing.T) {
	mustMap(t)
	w := newWritten(t, true)
	w.segment(1, 64<<10, 0, 0)
	end := w.commit(3, 20_000)
	if end.Offset() < 60_000 {
		t.Fatal("the commit does not reach as far as it is to")
	}
	w.seg.Drop()
	w.ok(os.Truncate(w.name(1), 32<<10))
	if err := w.tail.read(&w.state, end); err == nil || !strings.Contains(err.Error(), "read log segment") {
		t.Errorf("a segment that was cut: %v", err)
	}
	if n := w.maps(1, true); n != 0 {
		t.Errorf("%d mappings", n)
	}
}

// TestSyncedSegmentIsNotMapped: one whose writer has it in memory of its own may be used again.
func TestSyncedSegmentIsNotMapped(t *testing.T) {
	mustMap(t)
	w := newWritten(t, true)
	w.mapped = false
	w.segment(1, 64<<10, 0, 0)
	w.ok(w.tail.read(&w.state, w.commit(3, 10)))
	w.holds(1, 3)
	if n := w.maps(1, false); n != 0 {
		t.Errorf("%d mappings", n)
	}
}

// TestManyRecordsBehindFew: a memtable made where records are long is too small for short ones, and the next one
// is as they are.
func TestManyRecordsBehindFew(t *testing.T) { inEachWay(t, testManyRecordsBehindFew) }

func testManyRecordsBehindFew(t *testing.T, mapped bool) {
	w := newWritten(t, mapped)
	w.segment(1, 8<<20, 0, 0)
	w.ok(w.tail.read(&w.state, w.commit(1, 100_000)))
	for range 3 {
		w.ok(w.tail.read(&w.state, w.commit(50_000, 0)))
	}
	w.holds(1, w.next-1)
	var end wal.Position
	for range 10 {
		end = w.commit(2, 300_000)
	}
	w.ok(w.tail.read(&w.state, end))
	w.holds(1, w.next-1)
}
