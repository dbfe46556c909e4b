package arena

import (
	"math"
	"sync/atomic"
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
// and make room. All methods may be called from any goroutine; a sum over the
// classes is not one instant's.
type Budget struct {
	limit int64
	used  [classes]atomic.Int64
}

// NewBudget returns a budget of limit bytes; limit <= 0 means no limit.
func NewBudget(limit int64) *Budget {
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return &Budget{limit: limit}
}

// Limit returns the bound in bytes, the greatest int64 if there is none.
func (b *Budget) Limit() int64 { return b.limit }

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
