package compact

import (
	"maps"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/manifest"
)

// Leftover is what a merge had to leave in a table it wrote.
type Leftover struct {
	Snapshot uint64 // the least of Inputs.Readers of the merge, if it was bottommost
	Kept     []Kept // for snapshots only
	Full     int    // the level in which joining it with its neighbours, as small as it is, did not make fewer; 0: none
	Quick    bool   // of the bottom, and compressed with little effort
}

// Kept is versions that nobody can see who does not read at a sequence from From to To.
type Kept struct {
	From, To uint64
	Bytes    int64 // of keys and values
}

// mostKept is how many a Leftover tells apart.
const mostKept = 16

// Keep adds versions to those that are kept.
func (l *Leftover) Keep(k Kept) {
	for i := range l.Kept {
		if kept := &l.Kept[i]; kept.From == k.From && kept.To == k.To {
			kept.Bytes += k.Bytes
			return
		}
	}
	if len(l.Kept) < mostKept {
		l.Kept = append(l.Kept, k)
		return
	}
	last := &l.Kept[mostKept-1]
	last.From, last.To, last.Bytes = min(last.From, k.From), max(last.To, k.To), last.Bytes+k.Bytes
}

// garbage returns how many bytes of what was kept nobody can see any more.
func (l *Leftover) garbage(in *Inputs) (n int64) {
	for _, k := range l.Kept {
		if !in.read(k.From, k.To) {
			n += k.Bytes
		}
	}
	return n
}

// Leftovers remembers of the tables of a store what the merges that wrote them could not
// drop. It is safe for concurrent use. The zero value is empty.
type Leftovers struct {
	mu      sync.Mutex
	byTable map[uint64]Leftover
	failed  map[uint64]failure
}

// failure is that a table could not be read.
type failure struct {
	again time.Time     // when it is to be tried again
	wait  time.Duration // how long that is from the last time
}

// A table that could not be read is tried again, since it need not be the device that was wrong, but seldom: whatever is
// merged with it is written for nothing.
const (
	failedWait     = 10 * time.Second
	mostFailedWait = time.Hour
)

// Failed takes up that a table could not be read.
func (l *Leftovers) Failed(num uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = map[uint64]failure{}
	}
	wait := min(max(2*l.failed[num].wait, failedWait), mostFailedWait)
	l.failed[num] = failure{time.Now().Add(wait), wait}
}

// Unreadable returns the tables that are not to be read yet.
func (l *Leftovers) Unreadable() map[uint64]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	var nums map[uint64]bool
	for num, f := range l.failed {
		if time.Now().Before(f.again) {
			if nums == nil {
				nums = map[uint64]bool{}
			}
			nums[num] = true
		}
	}
	return nums
}

// Note takes up what Merge.Leftovers says of the tables, by number, that a job has written.
// oldest is the least of Inputs.Readers when it began.
func (l *Leftovers) Note(job *Job, tables []uint64, left []Leftover, oldest uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byTable == nil {
		l.byTable = map[uint64]Leftover{}
	}
	full := 0
	if job.joins && len(left) >= job.Tables() {
		full = job.OutLevel
	}
	for i, num := range tables {
		if job.Bottommost {
			left[i].Snapshot = oldest
		}
		left[i].Full, left[i].Quick = full, job.Quick && job.OutLevel == manifest.Bottom
		l.byTable[num] = left[i]
	}
}

// Found takes up what was found out of a table of the last level that no merge of this process has written.
func (l *Leftovers) Found(num uint64, left Leftover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.byTable[num]; !known {
		if l.byTable == nil {
			l.byTable = map[uint64]Leftover{}
		}
		l.byTable[num] = left
	}
}

// Known reports whether there is anything to say of a table.
func (l *Leftovers) Known(num uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.byTable[num]
	return known
}

// Drop forgets a table.
func (l *Leftovers) Drop(num uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byTable, num)
	delete(l.failed, num)
}

// All returns a copy, by number of the table.
func (l *Leftovers) All() map[uint64]Leftover {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byTable)
}
