package compact

import "time"

// Quiet watches whether commits arrive, and whether a store is used at all.
type Quiet struct {
	seq           uint64
	since, unused time.Time
	still         bool // no commit came between the last two looks
	paused        bool // commits came after such a pause
}

// Look notes what is seen now: the newest sequence, and whether anybody has used the store since
// the last look.
func (q *Quiet) Look(seq uint64, used bool) {
	now := time.Now()
	came := seq != q.seq || q.since.IsZero()
	if came {
		q.seq, q.since = seq, now
		q.paused = q.still
	}
	q.still = !came
	if used || came {
		q.unused = now
	}
}

// Idle reports whether the store has had no commit for that long, as far as was watched.
func (q *Quiet) Idle(long time.Duration) bool { return time.Since(q.since) >= long }

// Unused reports whether nobody has used the store for that long, as far as was watched, since
// commits that came without pauses.
func (q *Quiet) Unused(long time.Duration) bool {
	return !q.paused && time.Since(q.unused) >= long
}
