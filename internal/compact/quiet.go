package compact

import "time"

// Quiet watches whether commits arrive.
type Quiet struct {
	seq   uint64
	since time.Time
}

// Idle reports whether the store, whose newest sequence is seq, has had no commit for
// that long, as far as was watched.
func (q *Quiet) Idle(seq uint64, long time.Duration) bool {
	if now := time.Now(); seq != q.seq || q.since.IsZero() {
		q.seq, q.since = seq, now
	}
	return time.Since(q.since) >= long
}
