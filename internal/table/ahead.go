package table

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/turn"
)

// A walk that has come to some blocks one after the other, none of which was resident, has those that come next
// decoded by other goroutines meanwhile, which make them resident: to decompress a block takes longer than most
// that is done with its rows. How much is decoded ahead grows as the walk goes on. What no processor was found for
// until the walk comes to it, the walk decodes itself.
const (
	aheadAfter = 2        // blocks of a walk before anything is decoded ahead
	aheadLeast = 16 << 10 // bytes of decoded pages that a goroutine is sent for at first
	aheadBytes = 64 << 10 // and at most
	aheadMost  = 4        // goroutines for one walk, so that some have work while others have done theirs
	aheadSkip  = 16       // blocks among which the next one that is not resident is looked for
	aheadPause = 64       // blocks for which nobody is sent when processors are wanted by others
)

// ahead decodes ahead of a walk in one direction. Its methods are for the goroutine that walks, but for run.
type ahead struct {
	r       *Reader
	dir     int  // 1 or -1
	values  bool // wanted, not only keys
	next    int  // the first block ahead that nobody was sent for
	bytes   int  // of decoded pages, for the next errand
	most    int  // for any
	share   turn.Share
	paused  int // blocks that are to come before anybody is sent again
	errands [aheadMost]*errand
	sent    atomic.Int64 // goroutines that are under way, or about to be
	stop    atomic.Bool
}

// errand is neighbouring blocks for a goroutine to decode, or for the walk, whichever takes it first.
type errand struct {
	from, to int // to is not one of them
	bytes    int // of what is missing of them
	values   bool
	taken    atomic.Bool
	done     sync.WaitGroup // of the goroutine, if it has taken it
}

// take reports whether nobody has taken the errand before.
func (e *errand) take() bool { return e.taken.CompareAndSwap(false, true) }

// newAhead returns what decodes ahead of a walk that goes on from block b, or nil: on one processor, or where there
// is little memory.
func (r *Reader) newAhead(b, dir int) *ahead {
	most := int(min(r.cache.AheadLimit()/aheadMost, aheadBytes))
	if runtime.GOMAXPROCS(0) < 2 || most < aheadLeast {
		return nil
	}
	return &ahead{r: r, dir: dir, next: b, bytes: aheadLeast, most: most}
}

// at is called when the walk comes to block b. It sends for what comes next, and waits for b, and what is decoded with
// it, if somebody has begun.
func (a *ahead) at(b int, values bool) {
	a.values = a.values || values
	if !a.behind(b, a.next) {
		a.next = b + a.dir
	}
	for i, e := range a.errands {
		if e != nil && !a.behind(b, e.from) {
			a.conclude(i)
		}
	}
	if a.paused > 0 {
		a.paused--
		return
	}
	for i, e := range a.errands {
		switch {
		case e != nil:
		case a.crowded():
			a.paused = aheadPause
			return
		case !a.send(i):
			a.paused = aheadSkip / 2
			return
		}
	}
}

// behind reports whether the walk comes to block b before it comes to block at.
func (a *ahead) behind(b, at int) bool { return (at-b)*a.dir > 0 }

// send sends a goroutine for the next blocks of which some is missing, and reports whether it could: there are some,
// and not too much is ahead of all walks together.
func (a *ahead) send(i int) bool {
	from, to, bytes := a.next, a.next, 0
	for b := a.next; bytes < a.bytes && a.behind(b, to+aheadSkip*a.dir); b += a.dir {
		n := a.missing(b)
		if n > 0 && bytes == 0 {
			from = b
		}
		if n > 0 {
			to = b + a.dir
		}
		bytes += n
	}
	if bytes == 0 || !a.r.cache.TakeAhead(bytes) {
		return false
	}
	e := &errand{from: from, to: to, bytes: bytes, values: a.values}
	a.errands[i], a.next, a.bytes = e, to, min(2*a.bytes, a.most)
	a.sent.Add(1)
	e.done.Add(1)
	go a.run(e)
	return true
}

// crowded reports whether somebody waits for a processor who was not sent.
func (a *ahead) crowded() bool { return int64(a.share.Waiting()) > a.sent.Load() }

// conclude waits for whoever is at the i-th errand, or takes it from who would have been.
func (a *ahead) conclude(i int) {
	e := a.errands[i]
	if !e.take() {
		e.done.Wait()
	}
	a.r.cache.GiveAhead(e.bytes)
	a.errands[i] = nil
}

// missing returns how many bytes the pages of block b take that are wanted and not resident. A block with values that
// could not be compressed is not worth it where they are wanted.
func (a *ahead) missing(b int) (n int) {
	if b < 0 || b >= a.r.Blocks() {
		return 0
	}
	e := &a.r.index.Blocks[b]
	values := a.values && a.r.hasValuePage(b)
	if values && e.ValuePage >= e.ValueHeap {
		return 0
	}
	if a.r.slots[2*b].Peek() == nil {
		n += int(e.KeyForm)
	}
	if values && a.r.slots[2*b+1].Peek() == nil {
		n += int(e.ValueHeap)
	}
	return n
}

// run does an errand. What fails is left to the walk, which comes to it and says so. Of a walk that nobody ends, since its
// transaction was forgotten, the table may be closed meanwhile: then it cannot be read from, and a page that was read before goes
// as others do that nobody uses.
func (a *ahead) run(e *errand) {
	defer a.sent.Add(-1)
	if !e.take() {
		return
	}
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

// end ends what is under way: it waits until a block that is being read has been. nil is nothing.
func (a *ahead) end() {
	if a == nil {
		return
	}
	a.stop.Store(true)
	for i, e := range a.errands {
		if e != nil {
			a.conclude(i)
		}
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
	e := &r.index.Blocks[b]
	return e.ValueHeap != 0 && !e.Jumbo()
}
