package memtable

import (
	"bytes"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// chunk is a sorted part of a table's records. A search that looks at keys misses the
// processor's caches at every step, so that of a long chunk has fences to begin with:
// the first bytes of some keys, together in memory.
type chunk struct {
	recs   []uint32
	common []byte   // what all keys begin with; where there are fences
	fences []uint64 // of every fenceStride-th record: the eight bytes behind common
}

// fenceStride is how many records there are from one fence to the next: so many keys are
// looked at in one go.
const fenceStride = 8

// fence makes the fences of a chunk, once. One that new records may soon be merged into
// gets none.
func (t *Table) fence(c *chunk) {
	if c.fences != nil || len(c.recs) <= fewRecords {
		return
	}
	_, first := t.key(c.recs[0])
	_, last := t.key(c.recs[len(c.recs)-1])
	c.common = first[:base.CommonPrefix(first, last)]
	c.fences = make([]uint64, 0, (len(c.recs)+fenceStride-1)/fenceStride)
	for i := 0; i < len(c.recs); i += fenceStride {
		_, key := t.key(c.recs[i])
		c.fences = append(c.fences, head(key[len(c.common):]))
	}
}

// between bounds how many records have keys less than the given one, by the fences.
func (c *chunk) between(key []byte) (low, high int) {
	low, high = 0, len(c.recs)
	if c.fences == nil {
		return low, high
	}
	n := len(c.common)
	switch order := bytes.Compare(key[:min(len(key), n)], c.common); {
	case order < 0:
		return 0, 0
	case order > 0:
		return high, high
	}
	h := head(key[n:])
	if less, _ := slices.BinarySearch(c.fences, h); less > 0 {
		low = (less-1)*fenceStride + 1
	}
	if more := sort.Search(len(c.fences), func(i int) bool { return c.fences[i] > h }); more < len(c.fences) {
		high = more * fenceStride
	}
	return low, high
}
