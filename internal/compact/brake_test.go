package compact

import (
	"testing"
	"time"
)

// Commits are slowed by their bytes, whatever their size, and the more the more runs there
// are; never for long at once, and not at all while there are few.
func TestBrake(t *testing.T) {
	rate := func(runs int, bytes int64) (perSecond float64, longest time.Duration) {
		var b Brake
		waited := time.Duration(0)
		const total = 64 << 20
		for done := int64(0); done < total; done += bytes {
			d := b.Delay(runs, bytes)
			waited, longest = waited+d, max(longest, d)
			if d > 0 && d < shortestPause {
				t.Errorf("%d runs, commits of %d: a pause of %v", runs, bytes, d)
			}
		}
		return total / waited.Seconds(), longest
	}
	for _, bytes := range []int64{100, 1000, 64 << 10, 1 << 20, 16 << 20} {
		if got, _ := rate(freeRuns+1, bytes); got < 480e6 || got > 520e6 {
			t.Errorf("one run too many, commits of %d bytes: %.0f MB/s", bytes, got/1e6)
		}
		if got, _ := rate(freeRuns+16, bytes); got < 30e6 || got > 33e6 {
			t.Errorf("16 runs too many, commits of %d bytes: %.0f MB/s", bytes, got/1e6)
		}
	}
	if _, longest := rate(freeRuns+64, 32<<10); longest >= longestPause {
		t.Errorf("the longest pause of commits of 32 KiB is %v", longest)
	}
	var large Brake
	if d := large.Delay(freeRuns+16, 1<<40); d != longestOfAll {
		t.Errorf("a very large commit waits %v", d)
	}
	large.owed.Store(int64(longestOfAll)) // of others, who have not come to wait yet
	if d := large.Delay(freeRuns+16, 100); d != longestPause {
		t.Errorf("a small commit behind a large one waits %v", d)
	}
	if d := large.Delay(freeRuns, 1); d != 0 || large.owed.Load() != 0 {
		t.Errorf("few runs again: a pause of %v, and %d owed", d, large.owed.Load())
	}
	var b Brake
	for range 1000 {
		if d := b.Delay(freeRuns, 1<<30); d != 0 {
			t.Fatalf("few runs, and a pause of %v", d)
		}
	}
}
