package pace

import (
	"sync/atomic"
	"time"
)

// Brake slows commits, by their bytes, while level 0 owes too many runs (weigh) or too many memtables wait to be
// flushed, so that debt stays bounded and, where Memory is not small, nobody is stopped. The zero value is
// ready. All methods may be called at once.
type Brake struct{ owed atomic.Int64 } // nanoseconds that no commit has waited yet; negative if commits have waited too long

const (
	freeRuns = 8 // that level 0 counts as, with which commits are not slowed

	// Nanoseconds that a byte waits for each run more: with one commits are slowed to 500 MB/s,
	// with 16 to 31, which is less than one processor merges.
	perRun = 2.0
	// And for memtables, times the square of how many too many wait: with one commits are slowed to
	// 63 MB/s, with half of one to 250.
	perMemtable = 16.0

	shortestPause = 250 * time.Microsecond // what is owed waits until it is worth a pause
	longestPause  = 10 * time.Millisecond  // of one commit, unless it owes more by itself
	longestOfAll  = time.Second
)

// perByte returns how many nanoseconds each byte of a commit should wait, where level 0 counts as that many
// runs, and so many more memtables wait to be flushed than should, the active one as far as it is used.
func perByte(runs, more float64) float64 {
	more = max(0, more)
	return perRun*max(0, runs-freeRuns) + perMemtable*more*more
}

// Delay returns how long a commit of so many bytes should wait, each of which waits perByte
// nanoseconds.
func (b *Brake) Delay(perByte float64, bytes int64) time.Duration {
	if perByte == 0 {
		if b.owed.Load() != 0 {
			b.owed.Store(0)
		}
		return 0
	}
	more := int64(float64(bytes) * perByte)
	for {
		before := b.owed.Load()
		owed := min(max(before, -int64(longestPause))+more, int64(longestOfAll))
		pause := min(owed, max(more, int64(longestPause)))
		if pause < int64(shortestPause) {
			pause = 0
		}
		if b.owed.CompareAndSwap(before, owed-pause) {
			return time.Duration(pause)
		}
	}
}

// Overslept notes that a commit has waited longer than it should have, by so much: others wait less,
// by longestPause at most.
func (b *Brake) Overslept(d time.Duration) { b.owed.Add(-int64(d)) }
