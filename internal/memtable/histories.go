package memtable

import (
	"slices"
	"sort"
	"sync"
)

// longChain is how many versions of a key, each newer than what is looked for, are passed one by one.
const longChain = 64

// histories are the versions of hot keys, for who looks for one that many others have followed: a snapshot that is kept
// open while a counter counts. A key gets its history when a read has passed longChain of its versions, and every read
// that passes as many adds the newer ones, each once; so it takes four to eight bytes for each version, and a read that finds
// one O(log n) steps. The zero value has none.
type histories struct {
	mu sync.Mutex
	of map[uint64][]uint32 // by the key's base.Hash: records, the oldest first
}

// find returns the newest version, of the key whose versions are from record rec on back, that is seen: 1 + its record, 0
// if there is none. Of two versions the older one is seen if the newer is. known is false if the key has no history,
// since another one with the same hash has.
func (h *histories) find(prev []uint32, hash uint64, rec uint32, seen func(rec uint32) bool) (found uint32, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	recs := h.of[hash]
	n := len(recs)
	if n == 0 || rec > recs[n-1] {
		for next := rec + 1; next != 0 && (n == 0 || next-1 > recs[n-1]); next = prev[next-1] {
			recs = append(recs, next-1)
		}
		slices.Reverse(recs[n:])
		if n > 0 && prev[recs[n]] != recs[n-1]+1 {
			return 0, false
		}
		if h.of == nil {
			h.of = map[uint64][]uint32{}
		}
		h.of[hash] = recs
	}
	at, ok := slices.BinarySearch(recs, rec)
	if !ok {
		return 0, false
	}
	if n := sort.Search(at, func(i int) bool { return !seen(recs[i]) }); n > 0 {
		return recs[n-1] + 1, true
	}
	return 0, true
}

// forget forgets all.
func (h *histories) forget() { h.of = nil }
