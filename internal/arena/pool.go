package arena

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// DefaultPoolSpares is how many unused buffers a Pool keeps.
const DefaultPoolSpares = 4

// ErrPoolClosed is returned by Get after Close.
var ErrPoolClosed = errors.New("arena: pool is closed")

// Pool recycles big buffers, such as the arenas of memtables: the first touch of
// fresh memory costs more than the work done in it. A buffer serves again where at
// most a quarter of it would be wasted; of those that nobody asks for the oldest go.
// All its memory, spare or handed out, counts toward the budget. All methods may
// be called from any goroutine.
type Pool struct {
	budget *Budget
	class  Class
	mu     struct {
		sync.Mutex
		spare  [][]byte        // the oldest first
		out    map[uintptr]int // sizes of the buffers handed out, by address
		keep   int
		closed bool
		leaves bool // to others what it has when it is closed
	}
}

// NewPool returns an empty pool whose memory counts as class c of b. It keeps
// at most DefaultPoolSpares unused buffers; see SetSpares.
func NewPool(b *Budget, c Class) *Pool {
	p := &Pool{budget: b, class: c}
	p.mu.out = make(map[uintptr]int)
	p.mu.keep = DefaultPoolSpares
	return p
}

// SetSpares changes how many unused buffers are kept from now on.
func (p *Pool) SetSpares(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.keep = max(n, 0)
}

// Get returns n bytes, n > 0, beginning at a page; cap is at
// least n rounded up to pages. The contents are unspecified: what the previous user left, or zeros.
// The caller owns the buffer until Put. Errors: ErrPoolClosed, no memory.
func (p *Pool) Get(n int) (b []byte, err error) {
	if n <= 0 || n > maxMapBytes {
		return nil, fmt.Errorf("arena: cannot allocate %d bytes", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, ErrPoolClosed
	}
	size := roundUp(n, pageBytes)
	if i := p.fitting(size); i >= 0 {
		b = p.mu.spare[i]
		p.mu.spare = slices.Delete(p.mu.spare, i, i+1)
	} else if b, err = p.fresh(size); err != nil {
		return nil, err
	}
	p.mu.out[address(b)] = len(b)
	return b[:n], nil
}

// Put takes back a buffer, which is what Get returned or a prefix of it. Nobody
// may use it any more. A buffer that is not out is ErrNotAllocated. After Close
// buffers are unmapped at once, or left to others (Leave).
func (p *Pool) Put(b []byte) error { return p.take(b, true) }

// Discard is Put for a buffer whose size nobody will ask for again: it is unmapped.
func (p *Pool) Discard(b []byte) error { return p.take(b, false) }

func (p *Pool) take(b []byte, keep bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, ok := p.mu.out[address(b)]
	if !ok || size != cap(b) {
		return ErrNotAllocated
	}
	delete(p.mu.out, address(b))
	b = b[:size]
	if p.mu.closed || !keep {
		return p.unmap(b)
	}
	p.mu.spare = append(p.mu.spare, b)
	return p.trim(p.mu.keep)
}

// Spare returns the bytes of the unused buffers.
func (p *Pool) Spare() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := int64(0)
	for _, b := range p.mu.spare {
		sum += int64(len(b))
	}
	return sum
}

// Growth returns how many bytes the pool would take from the system for buffers of the
// given sizes, which differ: those that no unused buffer serves for.
func (p *Pool) Growth(sizes ...int) (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, size := range sizes {
		if size = roundUp(size, pageBytes); p.fitting(size) < 0 {
			n += int64(size)
		}
	}
	return n
}

// Leave makes Close leave the buffers to whoever needs some in the next second, in place of
// unmapping them. It returns p.
func (p *Pool) Leave() *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.leaves = true
	return p
}

// Shed unmaps the unused buffers of n bytes and more: they serve for nothing any more.
func (p *Pool) Shed(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	p.mu.spare = slices.DeleteFunc(p.mu.spare, func(b []byte) bool {
		if len(b) >= n {
			err = errors.Join(err, p.unmap(b))
		}
		return len(b) >= n
	})
	return err
}

// Trim unmaps the unused buffers.
func (p *Pool) Trim() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trim(0)
}

// Close unmaps the unused buffers and refuses to hand out more. If some are
// still out it says so; those stay valid, and are unmapped when they are Put.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	err := p.trim(0)
	if n := len(p.mu.out); n > 0 {
		err = errors.Join(err, fmt.Errorf("arena: pool closed with %d buffers out", n))
	}
	return err
}

// Serves reports whether a Pool gives a buffer of have bytes to whoever asks for want.
func Serves(have, want int) bool { return have >= want && have-want <= have/4 }

// fitting returns the index of the smallest spare buffer that serves for size, or -1.
func (p *Pool) fitting(size int) int {
	best := -1
	for i, b := range p.mu.spare {
		if Serves(len(b), size) && (best < 0 || len(b) < len(p.mu.spare[best])) {
			best = i
		}
	}
	return best
}

func (p *Pool) fresh(size int) ([]byte, error) {
	if b := kept.buffer(size); b != nil {
		p.budget.Add(p.class, int64(size))
		return b, nil
	}
	b, err := Map(size)
	if err != nil {
		return nil, err
	}
	AdviseHuge(b)
	p.budget.Add(p.class, int64(size))
	return b, nil
}

func (p *Pool) unmap(b []byte) error {
	p.budget.Add(p.class, -int64(len(b)))
	if p.mu.closed && p.mu.leaves && kept.keep(b, nil) {
		return nil
	}
	return Unmap(b)
}

// trim unmaps unused buffers, the oldest first, until keep are left.
func (p *Pool) trim(keep int) error {
	var err error
	for len(p.mu.spare) > keep {
		err = errors.Join(err, p.unmap(p.mu.spare[0]))
		p.mu.spare = slices.Delete(p.mu.spare, 0, 1)
	}
	return err
}
