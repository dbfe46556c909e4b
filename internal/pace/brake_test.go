package pace

import (
	"testing"
	"time"
)

// Commits are slowed by their bytes, whatever their size, and the more the more runs there
// are; never for long at once, and not at all while there are few.
func TestBrake(t *testing.T) {
	rate := func(perByte float64, bytes int64) (perSecond float64, longest time.Duration) {
		var b Brake
		waited := time.Duration(0)
		const total = 64 << 20
		for done := int64(0); done < total; done += bytes {
			d := b.Delay(perByte, bytes)
			waited, longest = waited+d, max(longest, d)
			if d > 0 && d < shortestPause {
				t.Errorf("%v ns a byte, commits of %d: a pause of %v", perByte, bytes, d)
			}
		}
		return total / waited.Seconds(), longest
	}
	for _, bytes := range []int64{100, 1000, 64 << 10, 1 << 20, 16 << 20} {
		if got, _ := rate(perByte(freeRuns+1, 0), bytes); got < 480e6 || got > 520e6 {
			t.Errorf("one run too many, commits of %d bytes: %.0f MB/s", bytes, got/1e6)
		}
		if got, _ := rate(perByte(freeRuns+16, -1), bytes); got < 30e6 || got > 33e6 {
			t.Errorf("16 runs too many, commits of %d bytes: %.0f MB/s", bytes, got/1e6)
		}
	}
	for more, want := range map[float64]float64{0.5: 250e6, 1: 62.5e6, 2: 15.6e6} {
		if got, _ := rate(perByte(0, more), 1000); got < want*0.96 || got > want*1.04 {
			t.Errorf("%.1f memtables too many wait: %.0f MB/s", more, got/1e6)
		}
	}
	if _, longest := rate(perByte(freeRuns+64, -1), 32<<10); longest >= longestPause {
		t.Errorf("the longest pause of commits of 32 KiB is %v", longest)
	}
	var large Brake
	if d := large.Delay(perByte(freeRuns+16, -1), 1<<40); d != longestOfAll {
		t.Errorf("a very large commit waits %v", d)
	}
	large.owed.Store(int64(longestOfAll)) // of others, who have not come to wait yet
	if d := large.Delay(perByte(freeRuns+16, -1), 100); d != longestPause {
		t.Errorf("a small commit behind a large one waits %v", d)
	}
	if d := large.Delay(perByte(freeRuns, 0), 1); d != 0 || large.owed.Load() != 0 {
		t.Errorf("few runs again: a pause of %v, and %d owed", d, large.owed.Load())
	}
	var late Brake
	late.Overslept(time.Millisecond)
	if first, second := late.Delay(1, 1e6), late.Delay(1, 1e6); first != 0 || second != time.Millisecond {
		t.Errorf("after a pause that was 1 ms too long: %v and %v", first, second)
	}
	late.Overslept(time.Hour)
	if d := late.Delay(1, int64(longestPause)+1e6); d != time.Millisecond {
		t.Errorf("after an hour: %v", d)
	}
	var b Brake
	for range 1000 {
		if d := b.Delay(perByte(freeRuns, 0), 1<<30); d != 0 {
			t.Fatalf("few runs, and a pause of %v", d)
		}
	}
}
