package pace

import "time"

// Quiet watches whether commits arrive, and whether a store is used at all.
type Quiet struct {
	Long time.Duration // a pause that is an end, whatever was before

	seq           uint64
	since, unused time.Time
	still         bool      // no commit came between the last two looks
	resumed       time.Time // when commits came after a shorter pause, last; zero: they have not
}

// steadyFor is how long commits have to come without pauses, once there was one, for the next to be
// an end: who writes with pauses would have everything merged in each of them.
const steadyFor = 200 * time.Millisecond

// Look notes what is seen now: the newest sequence, and whether anybody has used the store since
// the last look.
func (q *Quiet) Look(seq uint64, used bool) {
	now := time.Now()
	came := seq != q.seq || q.since.IsZero()
	switch {
	case !came:
	case q.Idle(q.Long):
		q.resumed = time.Time{}
	case q.still:
		q.resumed = now
	}
	if q.still = !came; came {
		q.seq, q.since = seq, now
	}
	if used || came {
		q.unused = now
	}
}

// Idle reports whether the store has had no commit for that long, as far as was watched.
func (q *Quiet) Idle(long time.Duration) bool { return time.Since(q.since) >= long }

// Unused reports whether nobody has used the store for that long, as far as was watched, since
// commits that came without pauses.
func (q *Quiet) Unused(long time.Duration) bool {
	return (q.resumed.IsZero() || q.since.Sub(q.resumed) >= steadyFor) && time.Since(q.unused) >= long
}
