package pace

import (
	"testing"
	"time"
)

// TestQuiet: a store that was written to without pauses is unused sooner than one with pauses is
// idle, but not while it is read.
func TestQuiet(t *testing.T) {
	const short, long = 20 * time.Millisecond, 60 * time.Millisecond
	q := Quiet{Long: long}
	want := func(what string, unused, idle bool) {
		t.Helper()
		if q.Unused(short) != unused || q.Idle(long) != idle {
			t.Errorf("%s: unused %v, idle %v", what, !unused, !idle)
		}
	}
	back := func(d time.Duration) {
		q.since, q.unused = q.since.Add(-d), q.unused.Add(-d)
		if !q.resumed.IsZero() {
			q.resumed = q.resumed.Add(-d)
		}
	}
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
	q.Look(3, false)
	back(short)
	q.Look(3, false)
	want("commits after a long pause", true, false)
	q.Look(4, false)
	q.Look(5, false)
	q.Look(6, false)
	back(short)
	q.Look(6, false)
	want("commits after a short pause", false, false)
	q.Look(7, false)
	q.resumed = q.since.Add(-steadyFor)
	back(short)
	want("commits for long since then", true, false)
	back(long)
	q.Look(7, false)
	q.Look(8, false)
	back(short)
	want("commits after a long pause again", true, false)
}
