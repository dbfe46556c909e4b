package memtable

import (
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
)

// Stack is one order of several tables, a store's memtables, for those who scan them:
// sorted together they are one source, where each by itself would be one more to merge,
// row by row. Records that are new since the last scan are sorted and merged in; tables
// come on top and go at the bottom. All methods may be called at once.
type Stack struct {
	*numbers
	sorting sync.Mutex // of who replaces the order by a longer one
	now     atomic.Pointer[chunks]
	asked   atomic.Bool       // since Keep has looked last
	dropped atomic.Bool       // for good
	most    int               // refs
	count   func(delta int64) // bytes of the Go heap
	oldest  func() uint64     // see Init
}

// numbers are given to the tables of a stack, in the order of their age.
type numbers struct {
	mu   sync.Mutex
	last uint32 // of the newest table; guarded by mu
}

// give gives numbers to tables that have none, and returns that of the newest table of all.
func (n *numbers) give(tables []*Table) (last uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range tables {
		if t.num.Load() == 0 {
			n.last++
			t.num.Store(n.last)
		}
	}
	return n.last
}

// refBytes is what a ref takes.
const refBytes = 16

// Init makes s an empty stack that takes no more than about most bytes, and counts them. No
// iterator is for who sees less than the sequence that oldest returns when Append asks it: a
// version that others hide from all who see that need not be there.
func (s *Stack) Init(most int64, count func(delta int64), oldest func() uint64) {
	s.numbers, s.most, s.count, s.oldest = new(numbers), int(most/refBytes), count, oldest
}

// After returns an order of what comes behind the first n records of a table that has been
// given to Append, and of the tables after it. Without a table it is of tables that come after
// all that have been. Drop it.
func (s *Stack) After(t *Table, n int) *Stack {
	later := &Stack{numbers: s.numbers, most: s.most, count: s.count, oldest: s.oldest}
	if t != nil {
		num := t.num.Load()
		later.now.Store(&chunks{first: num, last: num, n: n})
	}
	return later
}

// Drop lets go of the order, and keeps Append from making it again. It waits for nobody.
func (s *Stack) Drop() {
	s.dropped.Store(true)
	s.replace(nil)
}

// Append appends iterators that together hold every put and delete of the tables, oldest
// first, with a sequence up to upTo that somebody sees, and a few others. It appends nothing and reports
// false where the tables are not the newest ones, or too large: each is to be walked by
// itself then.
func (s *Stack) Append(dst []base.Iterator, its *Iters, tables []*Table, upTo uint64) ([]base.Iterator, bool) {
	if !s.asked.Load() {
		s.asked.Store(true)
	}
	of := set{tables: tables, first: tables[0].num.Load()}
	c := s.now.Load()
	if of.first == 0 || tables[len(tables)-1].num.Load() != of.first+uint32(len(tables)-1) || !c.cover(&of) {
		if c = s.extend(&of); c == nil {
			return dst, false
		}
	}
	return its.over(dst, &of, c, upTo), true
}

// extend returns chunks of the tables, which it numbers, nil if that cannot be.
func (s *Stack) extend(of *set) *chunks {
	s.sorting.Lock()
	defer s.sorting.Unlock()
	last, records := s.give(of.tables), 0
	for _, t := range of.tables {
		records += t.Len()
	}
	of.first = of.tables[0].num.Load()
	c := s.now.Load()
	switch newest := of.tables[len(of.tables)-1].num.Load(); {
	case s.dropped.Load() || newest != last || newest != of.first+uint32(len(of.tables)-1) || c != nil && c.first > of.first:
		return nil // others have seen a newer state
	case c.cover(of):
		return c
	case records > s.most:
		s.replace(nil)
		return nil
	}
	next := of.extend(c, s.oldest())
	if s.replace(next); s.dropped.Load() {
		s.replace(nil) // Drop may have come before
	}
	return next
}

// replace makes c, which may be nil, the order.
func (s *Stack) replace(c *chunks) {
	old := s.now.Swap(c)
	s.count(int64(c.refs()-old.refs()) * refBytes)
}

// Keep is told of the oldest table there is, nil if there is none. If that is not the oldest
// one of the order, and nobody has asked for it since that was so last, or nothing of it is
// left, it goes. Keep waits for nobody.
func (s *Stack) Keep(oldest *Table) {
	c := s.now.Load()
	if c == nil {
		return
	}
	first := uint32(0)
	if oldest != nil {
		first = oldest.num.Load()
	}
	if first == c.first || first > c.first && first <= c.last && s.asked.Swap(false) {
		return
	}
	if s.now.CompareAndSwap(c, nil) {
		s.count(-int64(c.refs()) * refBytes)
	}
}
