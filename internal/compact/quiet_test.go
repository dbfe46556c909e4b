package compact

import (
	"testing"
	"time"
)

// TestQuiet: a store that was written to without pauses is unused sooner than one with pauses is
// idle, but not while it is read.
func TestQuiet(t *testing.T) {
	const short, long = 10 * time.Millisecond, 30 * time.Millisecond
	var q Quiet
	want := func(what string, unused, idle bool) {
		t.Helper()
		if q.Unused(short) != unused || q.Idle(long) != idle {
			t.Errorf("%s: unused %v, idle %v", what, !unused, !idle)
		}
	}
	back := func(d time.Duration) { q.since, q.unused = q.since.Add(-d), q.unused.Add(-d) }
	q.Look(0, false)
	q.Look(1, false)
	q.Look(2, true)
	want("commits", false, false)
	back(2 * short)
	q.Look(2, true)
	want("reads", false, false)
	back(short)
	q.Look(2, false)
	want("nothing", true, true)
	q.Look(3, false)
	back(2 * short)
	q.Look(3, false)
	want("a commit after a pause", false, false)
	back(short)
	want("long after it", false, true)
	q.Look(4, false)
	q.Look(5, false)
	back(short)
	want("commits without a pause", true, false)
}
