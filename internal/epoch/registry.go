package epoch

import (
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/invariants"
)

// chunkSlots is the number of slots per chunk: one bit each in chunk.used.
const chunkSlots = 64

// chunk is a group of slots. It is never unlinked once it is in the list.
type chunk struct {
	slots *[chunkSlots]Slot     // 128 bytes apart, so no two share a cache line
	used  atomic.Uint64         // bit i: slots[i] is registered
	next  atomic.Pointer[chunk] // the chunk made after this one; nil: none yet
	place int                   // index in registry.mu.chunks
}

// registry is the set of all slots of a domain. Scans read it without a lock.
type registry struct {
	oldest atomic.Pointer[chunk]
	count  atomic.Int64 // registered slots
	mu     struct {
		sync.Mutex
		chunks []*chunk // in order of creation
		room   int      // chunks below this index are full
	}
}

// register hands out a slot, preferring old chunks, so that those created in a
// rush of participants become empty again, and cheap to scan.
func (r *registry) register(d *Domain) *Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.chunkWithRoom(d)
	i := bits.TrailingZeros64(^c.used.Load())
	c.used.Or(1 << i)
	r.count.Add(1)
	return &c.slots[i]
}

// chunkWithRoom finds or makes a chunk with a free slot. r.mu is held.
func (r *registry) chunkWithRoom(d *Domain) *chunk {
	for ; r.mu.room < len(r.mu.chunks); r.mu.room++ {
		if c := r.mu.chunks[r.mu.room]; c.used.Load() != ^uint64(0) {
			return c
		}
	}
	c := newChunk(d)
	c.place = len(r.mu.chunks)
	link := &r.oldest
	if c.place > 0 {
		link = &r.mu.chunks[c.place-1].next
	}
	r.mu.chunks = append(r.mu.chunks, c)
	link.Store(c)
	return c
}

func newChunk(d *Domain) *chunk {
	c := &chunk{slots: new([chunkSlots]Slot)}
	for i := range c.slots {
		s := &c.slots[i]
		s.domain, s.home, s.index = d, c, int32(i)
	}
	return c
}

// release makes s available again. s is empty: local epoch 0, no snapshot.
func (r *registry) release(s *Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := s.home.used.And(^(uint64(1) << s.index))
	invariants.Assert(old>>s.index&1 == 1, "epoch.Slot released twice")
	r.mu.room = min(r.mu.room, s.home.place)
	r.count.Add(-1)
}

// all visits every slot that was registered during the whole of the walk, and
// perhaps others: invariant 2 of the package comment. As far as slots were free
// in no older chunk, those registered first come first.
func (r *registry) all() iter.Seq[*Slot] {
	return func(yield func(*Slot) bool) {
		for c := r.oldest.Load(); c != nil; c = c.next.Load() {
			for used := c.used.Load(); used != 0; used &= used - 1 {
				if !yield(&c.slots[bits.TrailingZeros64(used)]) {
					return
				}
			}
		}
	}
}
