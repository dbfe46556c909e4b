package arena

import (
	"errors"
	"fmt"
	"sync"
)

// DefaultPoolSpares is how many unused buffers of each size a Pool keeps.
const DefaultPoolSpares = 2

// ErrPoolClosed is returned by Get and GetZeroed after Close.
var ErrPoolClosed = errors.New("arena: pool is closed")

// Pool recycles big buffers, such as the arenas of memtables, by their exact
// size in pages: the first touch of fresh memory costs more than the work done in it.
// All its memory, spare or handed out, counts toward the budget. All methods may
// be called from any goroutine.
type Pool struct {
	budget *Budget
	class  Class
	mu     struct {
		sync.Mutex
		spare  map[int][][]byte // by size
		out    map[uintptr]int  // sizes of the buffers handed out, by address
		keep   int
		closed bool
	}
}

// NewPool returns an empty pool whose memory counts as class c of b. It keeps
// at most DefaultPoolSpares unused buffers of each size; see SetSpares.
func NewPool(b *Budget, c Class) *Pool {
	p := &Pool{budget: b, class: c}
	p.mu.spare = make(map[int][][]byte)
	p.mu.out = make(map[uintptr]int)
	p.mu.keep = DefaultPoolSpares
	return p
}

// SetSpares changes how many unused buffers of each size are kept from now on.
func (p *Pool) SetSpares(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.keep = max(n, 0)
}

// Get returns n bytes, n > 0, beginning at a page; cap is n rounded up to
// pages. The contents are unspecified: what the previous user left, or zeros.
// The caller owns the buffer until Put. Errors: ErrPoolClosed, no memory.
func (p *Pool) Get(n int) ([]byte, error) {
	b, _, err := p.get(n)
	return b, err
}

// GetZeroed is Get with all cap bytes zero.
func (p *Pool) GetZeroed(n int) ([]byte, error) {
	b, recycled, err := p.get(n)
	if err == nil && recycled {
		clear(b[:cap(b)])
	}
	return b, err
}

// Put takes back a buffer, which is what Get returned or a prefix of it. Nobody
// may use it any more. A buffer that is not out is ErrNotAllocated. After Close
// buffers are unmapped at once.
func (p *Pool) Put(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	size, ok := p.mu.out[address(b)]
	if !ok || size != cap(b) {
		return ErrNotAllocated
	}
	delete(p.mu.out, address(b))
	b = b[:size]
	if p.mu.closed || len(p.mu.spare[size]) >= p.mu.keep {
		return p.unmap(b)
	}
	p.mu.spare[size] = append(p.mu.spare[size], b)
	return nil
}

// Spare returns the bytes of the unused buffers.
func (p *Pool) Spare() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := int64(0)
	for size, spare := range p.mu.spare {
		sum += int64(size) * int64(len(spare))
	}
	return sum
}

// Trim unmaps the unused buffers.
func (p *Pool) Trim() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trim()
}

// Close unmaps the unused buffers and refuses to hand out more. If some are
// still out it says so; those stay valid, and are unmapped when they are Put.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	err := p.trim()
	if n := len(p.mu.out); n > 0 {
		err = errors.Join(err, fmt.Errorf("arena: pool closed with %d buffers out", n))
	}
	return err
}

func (p *Pool) get(n int) (b []byte, recycled bool, err error) {
	if n <= 0 || n > maxMapBytes {
		return nil, false, fmt.Errorf("arena: cannot allocate %d bytes", n)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, false, ErrPoolClosed
	}
	size := roundUp(n, pageBytes)
	if spare := p.mu.spare[size]; len(spare) > 0 {
		b, recycled = spare[len(spare)-1], true
		p.mu.spare[size] = spare[:len(spare)-1]
	} else if b, err = p.fresh(size); err != nil {
		return nil, false, err
	}
	p.mu.out[address(b)] = size
	return b[:n], recycled, nil
}

func (p *Pool) fresh(size int) ([]byte, error) {
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
	return Unmap(b)
}

func (p *Pool) trim() error {
	var err error
	for size, spare := range p.mu.spare {
		for _, b := range spare {
			err = errors.Join(err, p.unmap(b))
		}
		delete(p.mu.spare, size)
	}
	return err
}
