package arena

import (
	"slices"
	"sync"
	"time"

	"github.com/cairndb/cairn/internal/invariants"
)

const (
	keptBytes = 64 << 20    // at most
	keptFor   = time.Second // at least; at most twice as long
	keptOver  = 1 << 20     // bytes that may be mapped anew before any of it goes
)

// kept is memory that stores have given back when they were closed. Fresh memory is taken
// page by page, 4 to 8 us each, so who closes a store and opens the next one is better served
// with what is there already. It is nobody's for a second or two, and then the system's; and
// while new memory is mapped as much of it goes as comes, so that a process hardly ever takes
// more memory than it had while its stores were open.
var kept keeper

// keeper keeps mappings. It does not count them as mapped.
type keeper struct {
	mu    sync.Mutex
	all   []keptMapping // the oldest first
	bytes int
	fresh int         // bytes mapped anew for which nothing has gone yet
	timer *time.Timer // runs while there are any
}

type keptMapping struct {
	mem   []byte
	chunk *chunk // of a heap; nil: a buffer of a pool
	since time.Time
}

// keep takes a mapping over and reports whether it did. c describes it if it is a chunk of
// a heap, all of which is free. Where assertions are on nothing is kept: whoever
// uses memory that is not his any more shall be found.
func (k *keeper) keep(mem []byte, c *chunk) bool {
	if invariants.Enabled || len(mem) > keptBytes {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(k.bytes + len(mem) - keptBytes)
	k.all = append(k.all, keptMapping{mem, c, time.Now()})
	k.bytes += len(mem)
	mapped.Add(-int64(len(mem)))
	if k.timer == nil {
		k.timer = time.AfterFunc(keptFor, k.expire)
	}
	return true
}

// buffer returns a mapping of size bytes with unspecified contents, nil if none is kept.
func (k *keeper) buffer(size int) []byte {
	return k.take(func(m keptMapping) bool { return m.chunk == nil && len(m.mem) == size }).mem
}

// heapChunk returns a chunk that counts as no more than limit bytes, nil if none is kept.
func (k *keeper) heapChunk(limit int64) *chunk {
	return k.take(func(m keptMapping) bool { return m.chunk != nil && m.chunk.counted() <= limit }).chunk
}

// take removes the newest mapping that is asked for.
func (k *keeper) take(wanted func(keptMapping) bool) (m keptMapping) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.all) - 1; i >= 0; i-- {
		if m = k.all[i]; wanted(m) {
			k.all = slices.Delete(k.all, i, i+1)
			k.bytes -= len(m.mem)
			mapped.Add(int64(len(m.mem)))
			return m
		}
	}
	return keptMapping{}
}

// makeWay unmaps the oldest mappings for n bytes that are to be mapped.
func (k *keeper) makeWay(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.fresh += n; k.fresh >= keptOver && len(k.all) > 0; {
		k.fresh -= k.drop(1)
	}
	if k.fresh < 0 || len(k.all) == 0 {
		k.fresh = 0
	}
}

// drop unmaps the oldest mappings until at least n bytes are gone, or nothing is left,
// and returns how many are.
func (k *keeper) drop(n int) (gone int) {
	for gone < n && len(k.all) > 0 {
		mem := k.all[0].mem
		k.all = slices.Delete(k.all, 0, 1)
		k.bytes -= len(mem)
		gone += len(mem)
		err := unmapMemory(mem)
		invariants.Assert(err == nil, "%v", err)
	}
	return gone
}

// dropAll unmaps everything, and reports whether there was anything.
func (k *keeper) dropAll() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.drop(k.bytes) > 0
}

// expire unmaps what has been kept for long enough.
func (k *keeper) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := 0
	for _, m := range k.all {
		if time.Since(m.since) >= keptFor {
			old += len(m.mem)
		}
	}
	k.drop(old)
	if k.timer = nil; len(k.all) > 0 {
		k.timer = time.AfterFunc(keptFor, k.expire)
	}
}

// Borrow is Map for memory whose contents do not matter, and that is returned soon: what others have
// left, if there is any of that size, and if not what is kept of other sizes stays.
func Borrow(n int) ([]byte, error) {
	if b := kept.buffer(roundUp(n, pageBytes)); b != nil {
		return b, nil
	}
	return mapFresh(n)
}

// Return is Unmap of memory that the next one who asks for as much may have.
func Return(b []byte) {
	if b = b[:cap(b)]; !kept.keep(b, nil) {
		err := Unmap(b)
		invariants.Assert(err == nil, "%v", err)
	}
}

// Kept returns the bytes of memory that closed stores have left for others.
func Kept() int64 {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return int64(kept.bytes)
}
