package arena

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/invariants"
)

var (
	// ErrHeapClosed is returned by allocations after Close.
	ErrHeapClosed = errors.New("arena: heap is closed")
	// ErrNoRoom says that an allocation would exceed the limit it was given.
	ErrNoRoom = errors.New("arena: no room within the limit")
	// ErrNotAllocated is returned by Free for memory that is not an allocation
	// of this heap, or not any more.
	ErrNotAllocated = errors.New("arena: not an allocation of this heap")
)

// spareChunks is how many wholly free chunks a heap keeps for the next demand, at least.
const spareChunks = 1

// keptShare: a chunk that another heap has left is not taken if it counts as more than one
// part in so many of the limit.
const keptShare = 16

// What a heap leaves of what the system gives: half as much as it has, within bounds. Readers inside the epoch need
// some when they notice that there is little, as their own presence keeps what they evict; and so do memtables, and the
// Go runtime, which takes 4 MiB at a time, addresses for 64, and ends the process where it gets none.
const (
	leastHeadroom = 4 << 20
	mostHeadroom  = 72 << 20
)

func headroom(mapped int64) int64 { return min(max(mapped/2, leastHeadroom), mostHeadroom) }

// lowerDivisor: when the system gives no more the limit falls by one part in so many below what is used.
const lowerDivisor = 16

// poison overwrites freed memory where assertions are on, so that a use after
// free reads something no page contains.
const poison = 0xDB

// Heap allocates memory for decoded pages, outside the Go heap, in whole frames
// (4 KiB, or the page size of the operating system if that is greater) and halves,
// quarters, eighths and sixteenths of them. See the package comment for the policy. All methods may be called from any goroutine;
// one mutex guards everything, as allocation is far from the hot path.
type Heap struct {
	budget *Budget
	class  Class
	mu     struct {
		sync.Mutex
		chunks  []*chunk           // by address
		runs    runTree            // of the chunks, in the same order
		idle    int                // chunks that are wholly free
		keep    int                // so many may be, until Age
		least   int                // idle chunks since the last Age
		slabs   slabs              // frames in use that are cut into pieces
		large   map[uintptr][]byte // allocations that are mappings of their own
		mapped  int64
		counted int64 // bytes added to the budget
		inUse   int64 // bytes of frames and mappings handed out
		closed  bool
		leaves  bool // to others what it has when it is closed
		keeps   bool // the platform cannot release: do not try again
	}
}

// NewHeap returns an empty heap whose memory counts as class c of b.
func NewHeap(b *Budget, c Class) *Heap {
	h := &Heap{budget: b, class: c}
	h.mu.large = make(map[uintptr][]byte)
	h.mu.keep = spareChunks
	return h
}

// Alloc returns n bytes, n > 0, with unspecified contents; more than half a frame of them
// start at a frame. The caller owns them until Free. It tries to stay within the budget, but exceeds
// it rather than fail; the only errors are ErrHeapClosed and no memory at all.
func (h *Heap) Alloc(n int) ([]byte, error) {
	b, err := h.AllocWithin(n, h.budget.Limit())
	if !errors.Is(err, ErrNoRoom) {
		return b, err
	}
	return h.alloc(n, math.MinInt64)
}

// AllocWithin is Alloc that returns ErrNoRoom instead of letting the bytes used
// of the whole budget grow beyond limit. Memory that the heap holds already is
// used first, and given back to the system where that makes room.
func (h *Heap) AllocWithin(n int, limit int64) ([]byte, error) { return h.alloc(n, limit) }

// Free ends the life of an allocation: b is what Alloc returned, or a prefix of
// it. Memory that is not an allocation (any more) is ErrNotAllocated, and an
// assertion fails where they are on.
func (h *Heap) Free(b []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.free(address(b))
	invariants.Assert(err == nil, "arena: free of %d bytes: %v", len(b), err)
	return err
}

// Mapped returns the bytes of address space the heap holds.
func (h *Heap) Mapped() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.mapped
}

// InUse returns the bytes of the frames that are allocated.
func (h *Heap) InUse() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.inUse
}

// Spare returns the bytes that count toward the budget and are not allocated.
func (h *Heap) Spare() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mu.counted - h.mu.inUse
}

// Scavenge gives up to want bytes (rounded up to frames) of free memory back to
// the system and returns by how many the budget fell.
func (h *Heap) Scavenge(want int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scavenge(want)
}

// Leave makes Close leave what is free to whoever needs memory in the next second, in place
// of unmapping it.
func (h *Heap) Leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.leaves = true
}

// Shrink unmaps all of which nothing is allocated: somebody else needs the addresses.
func (h *Heap) Shrink() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unmapFree(0)
}

// Close unmaps everything that is free and refuses allocations from now on. If
// something is still allocated it returns an error that says how much; that
// memory stays valid and is unmapped as it is freed. What Leave leaves to others is not unmapped.
func (h *Heap) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.closed = true
	h.unmapFree(0)
	if h.mu.inUse != 0 {
		return fmt.Errorf("arena: heap closed with %d bytes allocated", h.mu.inUse)
	}
	return nil
}

// alloc places n bytes; limit math.MinInt64 means at any price.
func (h *Heap) alloc(n int, limit int64) ([]byte, error) {
	if n <= 0 || n > maxMapBytes {
		return nil, fmt.Errorf("arena: cannot allocate %d bytes", n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.closed {
		return nil, ErrHeapClosed
	}
	b, err := h.provide(n, limit)
	if err != nil {
		return nil, err
	}
	h.relieve()
	return b[:n], nil
}

// provide finds memory for n bytes: a piece of a frame, frames of a chunk, or a mapping.
func (h *Heap) provide(n int, limit int64) (b []byte, err error) {
	class, small := slabClass(n)
	if small {
		if b = h.mu.slabs.take(class); b != nil {
			return b, nil
		}
	}
	if size := roundUp(n, frameBytes); size > HugeBytes {
		b, err = h.allocLarge(size, limit)
	} else {
		b, err = h.allocFrames(size/frameBytes, limit)
	}
	if err != nil {
		return nil, err
	}
	h.mu.inUse += int64(len(b))
	if small {
		h.mu.slabs.add(b, class)
		b = h.mu.slabs.take(class)
	}
	return b, nil
}

// relieve gives free memory back while the whole budget is exceeded, by this
// heap's own overcommitment or by another spender: spare memory is worth keeping
// only within the budget.
func (h *Heap) relieve() {
	if over := h.budget.Used() - h.budget.Limit(); over > 0 {
		h.scavenge(over)
	}
}

// allocFrames takes n frames from the first chunk that has them with memory
// behind them, else from the first that has them at all, else from a new one.
func (h *Heap) allocFrames(n int, limit int64) ([]byte, error) {
	at, err := h.place(n, limit)
	if err != nil {
		return nil, err
	}
	c := h.mu.chunks[at]
	i := c.fit(n, int(h.mu.runs.at(at).dirty) >= n)
	clean := c.reserve(i, n)
	growth := int64(clean) * int64(frameBytes)
	if !h.admit(growth, limit) {
		c.cancel(i, n, clean)
		h.measure(c)
		h.unmapFree(spareChunks)
		return nil, ErrNoRoom
	}
	h.count(growth)
	b := c.occupy(i, n)
	h.measure(c)
	return b, nil
}

// measure notes the runs of c anew, and whether it is wholly free; its index may have changed.
func (h *Heap) measure(c *chunk) {
	i, _ := find(h.mu.chunks, c.base)
	h.mu.runs.set(i, c.runs())
	if idle := c.used == 0; idle != c.idle {
		if c.idle = idle; idle {
			h.mu.idle++
		} else {
			h.mu.idle--
			h.mu.least = min(h.mu.least, h.mu.idle)
		}
	}
}

// place returns the index of a chunk with n free frames in a row, mapping one
// if there is none.
func (h *Heap) place(n int, limit int64) (int, error) {
	if i := h.mu.runs.firstDirty(n); i >= 0 {
		return i, nil
	}
	if i := h.mu.runs.firstFree(n); i >= 0 {
		return i, nil
	}
	return h.grow(limit)
}

// grow maps a chunk: with huge pages, counted as a whole, if there are others and the
// limit has room for that, otherwise frame by frame: a heap may never hold more than a
// few frames, and the first touch of a huge page takes 2 MiB. It returns its index.
func (h *Heap) grow(limit int64) (int, error) {
	room := int64(0) // for what is not needed now
	if limit != math.MinInt64 {
		room = limit - h.budget.Used()
	}
	c := kept.heapChunk(min(room, limit/keptShare)) // which counts at once with all that was ever used of it
	if c == nil {
		mem, err := Map(HugeBytes)
		if err != nil || !available(int(headroom(h.mu.mapped))) {
			h.lower()
		}
		if err != nil {
			return 0, noRoom(err, limit)
		}
		c = newChunk(mem, len(h.mu.chunks) > 0 && room >= HugeBytes)
	}
	return h.insert(c), nil
}

// noRoom returns ErrNoRoom for an error of Map where there is a limit: the budget has learned of it.
func noRoom(err error, limit int64) error {
	if limit != math.MinInt64 && errors.Is(err, ErrNoMemory) {
		return ErrNoRoom
	}
	return err
}

// Cramped reports whether the system gives less than n bytes and some for others.
func (h *Heap) Cramped(n int64) bool {
	n += headroom(h.Mapped())
	return n <= int64(maxMapBytes) && !available(int(n))
}

// lower tells the budget that the system gives little more than is used.
func (h *Heap) lower() {
	used := h.budget.Used()
	h.budget.Lower(used - used/lowerDivisor)
}

// insert adds a chunk, all of which is free, and returns its index.
func (h *Heap) insert(c *chunk) int {
	i, _ := find(h.mu.chunks, c.base)
	h.mu.chunks = slices.Insert(h.mu.chunks, i, c)
	h.mu.runs.insert(i, c.runs())
	h.measure(c)
	h.mu.mapped += HugeBytes
	h.count(c.counted())
	return i
}

// Ready brings free memory into the process, as Touch does, until n bytes are at hand, the budget's
// use would exceed limit, or goOn says no. It is for a caller who has time before n bytes are
// allocated. Memory that is not needed then goes with the next Trim, or as scarcity wants it.
func (h *Heap) Ready(n, limit int64, goOn func() bool) {
	for h.Spare() < n && h.budget.Used()+HugeBytes <= limit && goOn() && h.ready() {
	}
}

// ready brings one more chunk into the process, and reports whether it did.
func (h *Heap) ready() bool {
	mem, err := Map(HugeBytes)
	if err != nil {
		return false
	}
	c := newChunk(mem, true)
	Touch(mem)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.insert(c)
	h.unmapFree(math.MaxInt) // if it was closed meanwhile
	return !h.mu.closed
}

// Keep lets the heap keep up to n bytes of free memory for the next demand, until nobody has wanted it
// between two calls of Age, or it is needed elsewhere: to touch fresh memory takes longer than most of
// what is done in it.
func (h *Heap) Keep(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.keep = max(int(n/HugeBytes), spareChunks)
}

// Age unmaps memory that was free all the time since it was called before.
func (h *Heap) Age() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unmapFree(max(h.mu.idle-h.mu.least, spareChunks))
	h.mu.least = h.mu.idle
}

// Trim unmaps memory of which nothing is allocated, but for what the next demand may want.
func (h *Heap) Trim() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unmapFree(spareChunks)
}

// admit makes sure that growing by growth bytes keeps the budget within limit,
// by giving back free memory if need be. No growth is always admitted.
func (h *Heap) admit(growth, limit int64) bool {
	if growth == 0 || limit == math.MinInt64 {
		return true
	}
	over := h.budget.Used() + growth - limit
	return over <= 0 || h.scavenge(over) >= over
}

// count adds delta bytes to what this heap spends.
func (h *Heap) count(delta int64) {
	h.mu.counted += delta
	h.budget.Add(h.class, delta)
}

func (h *Heap) allocLarge(size int, limit int64) ([]byte, error) {
	if !h.admit(int64(size), limit) {
		return nil, ErrNoRoom
	}
	b, err := Map(size)
	if err != nil {
		h.unmapFree(0)
		b, err = Map(size)
	}
	if err != nil {
		h.lower()
		return nil, noRoom(err, limit)
	}
	AdviseHuge(b)
	h.mu.large[address(b)] = b
	h.mu.mapped += int64(len(b))
	h.count(int64(len(b)))
	return b, nil
}

func (h *Heap) free(a uintptr) error {
	if b, ok := h.mu.large[a]; ok {
		return h.freeLarge(a, b)
	}
	at, ok := find(h.mu.chunks, a)
	if !ok {
		return ErrNotAllocated
	}
	c := h.mu.chunks[at]
	offset := int(a - c.base)
	i := offset / frameBytes
	offset %= frameBytes
	if piece, empty, known := h.mu.slabs.give(c.base+uintptr(i*frameBytes), offset); known {
		if piece == nil {
			return ErrNotAllocated
		}
		if invariants.Enabled {
			overwrite(piece)
		}
		if !empty {
			return nil
		}
	} else if offset != 0 || c.spans[i] == 0 {
		return ErrNotAllocated
	}
	n := c.vacate(i)
	h.measure(c)
	h.mu.inUse -= int64(n) * int64(frameBytes)
	if invariants.Enabled {
		overwrite(c.mem[i*frameBytes : (i+n)*frameBytes])
	}
	if c.used == 0 {
		h.unmapFree(h.mu.keep)
	}
	h.relieve()
	return nil
}

func (h *Heap) freeLarge(a uintptr, b []byte) error {
	delete(h.mu.large, a)
	h.mu.inUse -= int64(len(b))
	h.mu.mapped -= int64(len(b))
	h.count(-int64(len(b)))
	return Unmap(b)
}

func overwrite(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// unmapFree unmaps wholly free chunks, those at the highest addresses first,
// until at most keep of them are left; none is kept once the heap is closed.
func (h *Heap) unmapFree(keep int) {
	if h.mu.closed {
		keep = 0
	}
	for i := len(h.mu.chunks) - 1; i >= 0 && h.mu.idle > keep; i-- {
		if h.mu.chunks[i].used == 0 {
			h.unmapChunk(i)
		}
	}
}

func (h *Heap) unmapChunk(i int) {
	c := h.mu.chunks[i]
	h.mu.chunks = slices.Delete(h.mu.chunks, i, i+1)
	h.mu.runs.remove(i)
	h.mu.idle--
	h.mu.least = min(h.mu.least, h.mu.idle)
	c.idle = false
	h.mu.mapped -= int64(len(c.mem))
	h.count(-c.counted())
	if h.mu.closed && h.mu.leaves && kept.keep(c.mem, c) {
		return
	}
	err := Unmap(c.mem)
	invariants.Assert(err == nil, "%v", err)
}

// scavenge gives back wholly free chunks and then free frames, from the highest
// addresses down, as first fit keeps the low ones busy.
func (h *Heap) scavenge(want int64) int64 {
	before := h.mu.counted
	for i := len(h.mu.chunks) - 1; i >= 0 && h.mu.idle > 0 && before-h.mu.counted < want; i-- {
		if c := h.mu.chunks[i]; c.used == 0 && c.dirty > 0 {
			h.unmapChunk(i)
		}
	}
	for !h.mu.keeps && before-h.mu.counted < want {
		i := h.mu.runs.lastDirty()
		if i < 0 {
			break
		}
		c := h.mu.chunks[i]
		if c.dirty > 0 { // else its frames are reserved, which is not noted yet
			gone := c.release(want - (before - h.mu.counted))
			h.mu.keeps = gone == 0
			h.count(-gone)
		}
		h.measure(c)
	}
	return before - h.mu.counted
}
