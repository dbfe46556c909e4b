package arena

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A limit that was lowered is at least leastLimit, and grows by one part in raiseDivisor of what it was made with
// each time raiseAfter has passed.
const (
	leastLimit   = 1 << 20
	raiseDivisor = 16
	raiseAfter   = time.Minute
)

// Class says what a part of the memory budget is spent on.
type Class uint8

const (
	// ClassMemtable is log arenas, their hash slots, and the lists of their range deletes.
	ClassMemtable Class = iota
	// ClassPages is decoded pages.
	ClassPages
	// ClassIndex is point indexes and filters.
	ClassIndex
	// ClassMeta is table metadata: block indexes, bounds, tombstones.
	ClassMeta
	// ClassTx is the private writes and read sets of open transactions.
	ClassTx
	// ClassKept is buffers kept for the private writes of transactions to come.
	ClassKept

	classes
)

func (c Class) String() string {
	switch c {
	case ClassMemtable:
		return "memtable"
	case ClassPages:
		return "pages"
	case ClassIndex:
		return "index"
	case ClassMeta:
		return "meta"
	case ClassTx:
		return "tx"
	case ClassKept:
		return "kept"
	}
	return "unknown"
}

// Budget is the memory bound of one store and what is spent of it, in bytes, by
// class. It counts and never refuses: those who spend ask first (Used, Limit)
// and make room. Its limit falls when the system gives less than that (Lower), and
// grows again with time. All methods may be called from any goroutine; a sum over the
// classes is not one instant's.
type Budget struct {
	most  int64 // the limit it was made with
	limit atomic.Int64
	used  [classes]atomic.Int64

	mu struct {
		sync.Mutex
		raising bool // a timer runs
	}
}

// NewBudget returns a budget of limit bytes; limit <= 0 means no limit.
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	b := &Budget{most: limit}
	b.limit.Store(limit)
	return b
}

// Limit returns the bound in bytes, the greatest int64 if there is none.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// Lower makes limit the bound, if that is less: the system gave no memory though there was room within the bound, so
// that those who make room do it earlier from now on.
func (b *Budget) Lower(limit int64) {
	limit = max(limit, leastLimit)
	b.mu.Lock()
	defer b.mu.Unlock()
	if limit >= b.limit.Load() {
		return
	}
	b.limit.Store(limit)
	b.raiseLater()
}

// raiseLater sees to it that a limit that was lowered grows again. b.mu is held.
func (b *Budget) raiseLater() {
	if !b.mu.raising {
		b.mu.raising = true
		time.AfterFunc(raiseAfter, b.raise)
	}
}

// raise lets the limit grow, in steps: the system may give no more than before, which costs evicting a step each time.
func (b *Budget) raise() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.raising = false
	limit := b.limit.Load()
	limit += min(b.most/raiseDivisor+1, b.most-limit)
	b.limit.Store(limit)
	if limit < b.most {
		b.raiseLater()
	}
}

// Used returns the bytes spent by all classes.
func (b *Budget) Used() int64 {
	sum := int64(0)
	for i := range b.used {
		sum += b.used[i].Load()
	}
	return sum
}

// UsedBy returns the bytes spent by class c.
func (b *Budget) UsedBy(c Class) int64 { return b.used[c].Load() }

// Add counts delta bytes more (or, if negative, fewer) as spent by class c.
func (b *Budget) Add(c Class, delta int64) { b.used[c].Add(delta) }
