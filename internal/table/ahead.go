package table

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// A walk that has come to some blocks one after the other, none of which was resident, has those that come next
// decoded by other goroutines meanwhile, which make them resident: to decompress a block takes longer than most
// that is done with its rows. How much is decoded ahead grows as the walk goes on.
const (
	aheadAfter   = 2        // blocks of a walk before anything is decoded ahead
	aheadLeast   = 16 << 10 // bytes of decoded pages that a goroutine is sent for at first
	aheadBytes   = 64 << 10 // and at most
	aheadMost    = 4        // goroutines for one walk, so that some have work while others have done theirs
	aheadDivisor = 64       // all that is decoded ahead of a walk is one part in this many of the budget
	aheadSkip    = 16       // blocks among which the next one that is not resident is looked for
)

// ahead decodes ahead of a walk in one direction. Its methods are for the goroutine that walks, but for run.
type ahead struct {
	r       *Reader
	dir     int  // 1 or -1
	values  bool // wanted, not only keys
	next    int  // the first block ahead that nobody was sent for
	bytes   int  // of decoded pages, for the next errand
	most    int  // for any
	errands [aheadMost]errand
	stop    atomic.Bool
}

// errand is neighbouring blocks that a goroutine decodes. It does not change while it is under way.
type errand struct {
	from, to int // to is not one of them; if they are equal there is none
	values   bool
	done     sync.WaitGroup
}

// newAhead returns what decodes ahead of a walk that goes on from block b, or nil: on one processor, or where there
// is little memory.
func (r *Reader) newAhead(b, dir int) *ahead {
	most := int(min(r.budget.Limit()/aheadDivisor/aheadMost, aheadBytes))
	if runtime.GOMAXPROCS(0) < 2 || most < aheadLeast {
		return nil
	}
	return &ahead{r: r, dir: dir, next: b, bytes: aheadLeast, most: most}
}

// at is called when the walk comes to block b. It sends for what comes next, and waits for b if it was sent for.
func (a *ahead) at(b int, values bool) {
	a.values = a.values || values
	if !a.behind(b, a.next) {
		a.next = b + a.dir
	}
	for i := range a.errands {
		if e := &a.errands[i]; (e.from == e.to || !a.behind(b, e.to)) && !a.send(e) {
			break
		}
	}
	for i := range a.errands {
		if e := &a.errands[i]; e.from != e.to && !a.behind(b, e.from) && a.behind(b, e.to) {
			e.done.Wait()
		}
	}
}

// behind reports whether the walk comes to block b before it comes to block at.
func (a *ahead) behind(b, at int) bool { return (at-b)*a.dir > 0 }

// send has e, which the walk has passed, done for the next blocks of which some is missing, and reports whether
// there are any.
func (a *ahead) send(e *errand) bool {
	e.from, e.to, e.values = a.next, a.next, a.values
	bytes := 0
	for b := a.next; bytes < a.bytes && a.behind(b, e.to+aheadSkip*a.dir); b += a.dir {
		n := a.missing(b)
		if n > 0 && bytes == 0 {
			e.from = b
		}
		if n > 0 {
			e.to = b + a.dir
		}
		bytes += n
	}
	if bytes == 0 {
		return false
	}
	a.next, a.bytes = e.to, min(2*a.bytes, a.most)
	e.done.Add(1)
	go a.run(e)
	return true
}

// missing returns how many bytes the pages of block b take that are wanted and not resident. Values that could not be
// compressed are not worth it.
func (a *ahead) missing(b int) (n int) {
	if b < 0 || b >= a.r.Blocks() {
		return 0
	}
	e := &a.r.index.entries[b]
	if a.values && e.valuePage >= e.valueHeap {
		return 0
	}
	if a.r.slots[2*b].Peek() == nil {
		n += int(e.keyForm)
	}
	if a.values && a.r.hasValuePage(b) && a.r.slots[2*b+1].Peek() == nil {
		n += int(e.valueHeap)
	}
	return n
}

// run does an errand. What fails is left to the walk, which comes to it and says so.
func (a *ahead) run(e *errand) {
	defer e.done.Done()
	slot := a.r.cache.Register()
	defer slot.Release()
	for b := e.from; b != e.to && !a.stop.Load(); b += a.dir {
		slot.Enter()
		err := a.r.makeResident(b, e.values)
		slot.Exit()
		if err != nil {
			return
		}
	}
}

// end ends what is under way. nil is nothing.
func (a *ahead) end() {
	if a == nil {
		return
	}
	a.stop.Store(true)
	for i := range a.errands {
		a.errands[i].done.Wait()
	}
}

// makeResident reads the key page of block b, with values its value page too, unless they are resident. The caller
// is inside an epoch.
func (r *Reader) makeResident(b int, values bool) (err error) {
	if !values || !r.hasValuePage(b) {
		_, err = r.keyPage(b)
		return err
	}
	var s *scratch
	if r.slots[2*b].Peek() == nil && r.slots[2*b+1].Peek() == nil {
		if _, s, err = r.fillBlock(b, walked); err != nil {
			return err
		}
		defer s.done()
	} else if _, err = r.keyPage(b); err != nil {
		return err
	}
	if r.slots[2*b+1].Peek() == nil {
		_, err = r.fillValues(b, s, walked)
	}
	return err
}

// hasValuePage reports whether the values of block b are in one page: there are any, and they are not too long.
func (r *Reader) hasValuePage(b int) bool {
	e := &r.index.entries[b]
	return e.valueHeap != 0 && !e.jumbo()
}
