package workload

import (
	"errors"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Reads are made until they have taken long enough, at least once, and all of them count.
func TestReadsAreMadeUntilTheyCanBeTimed(t *testing.T) {
	for _, c := range []struct {
		atLeast time.Duration
		passes  int // at least
	}{{0, 1}, {100 * time.Millisecond, 2}} {
		rec, passes := NewRecorder(t.TempDir()), 0
		begun := time.Now()
		err := rec.Reads("get", 4, c.atLeast, func() error { passes++; time.Sleep(time.Millisecond); return nil })
		took := time.Since(begun)
		if err != nil || passes < c.passes || c.atLeast == 0 && passes > 1 || took < c.atLeast {
			t.Errorf("%s: %d passes in %s, %v", c.atLeast, passes, took, err)
		}
		each := time.Duration(rec.Metrics["get"])
		if least, most := time.Millisecond/4, took/time.Duration(4*passes); each < least || each > most {
			t.Errorf("%s: %s a read, want %s to %s", c.atLeast, each, least, most)
		}
	}
	wrong, calls := errors.New("a wrong answer"), 0
	err := NewRecorder(t.TempDir()).Reads("get", 1, time.Hour, func() error { calls++; return wrong })
	if !errors.Is(err, wrong) || calls != 1 {
		t.Errorf("%d calls, %v; want the first error to end it", calls, err)
	}
}

// Of the CPU time of reads that are made again and again one pass's is counted.
func TestRepeatedReadsCountOnce(t *testing.T) {
	rec, passes, sum := NewRecorder(t.TempDir()), 0, 0
	rec.Begin()
	if !rec.before.ok {
		t.Skip("this system does not count CPU time")
	}
	err := rec.Reads("get", 1, 200*time.Millisecond, func() error {
		for i := range 5_000_000 {
			sum += i * passes
		}
		passes++
		return nil
	})
	all := readUsage().cpu - rec.before.cpu
	rec.End()
	if one := time.Duration(rec.Metrics[result.CPU]); err != nil || passes < 3 || one > all/2 || one <= 0 {
		t.Errorf("%s of %s in %d passes (%d), %v", one, all, passes, sum, err)
	}
}
