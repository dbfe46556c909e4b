package compact

import (
	"sync/atomic"
	"time"
)

// Brake slows commits while level 0 has too many runs, by their bytes, so that debt stays
// bounded without anybody being stopped. The zero value is ready. All methods may be called
// at once.
type Brake struct{ owed atomic.Int64 } // nanoseconds that no commit has waited yet

const (
	freeRuns = 8 // of level 0, with which commits are not slowed

	// perByte is what a byte waits for each run more: with one commits are slowed to 500
	// MB/s, with 16 to 31, which is less than one processor merges.
	perByte = 2 * time.Nanosecond

	shortestPause = 250 * time.Microsecond // what is owed waits until it is worth a pause
	longestPause  = 10 * time.Millisecond  // of one commit, unless it owes more by itself
	longestOfAll  = time.Second
)

// Delay returns how long a commit of so many bytes should wait.
func (b *Brake) Delay(runs int, bytes int64) time.Duration {
	if runs <= freeRuns {
		if b.owed.Load() != 0 {
			b.owed.Store(0)
		}
		return 0
	}
	more := bytes * int64(runs-freeRuns) * int64(perByte)
	for {
		before := b.owed.Load()
		owed := min(before+more, int64(longestOfAll))
		pause := min(owed, max(more, int64(longestPause)))
		if pause < int64(shortestPause) {
			pause = 0
		}
		if b.owed.CompareAndSwap(before, owed-pause) {
			return time.Duration(pause)
		}
	}
}
