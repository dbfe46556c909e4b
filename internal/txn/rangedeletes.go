package txn

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// manyRangeDeletes reports whether the count entries of payload have so many range
// deletes that a memtable would take more than about that many bytes of the Go heap
// for them. Few batches are large enough for anything to be looked at.
func manyRangeDeletes(payload []byte, count, most int) bool {
	if count <= most/memtable.RangeDeleteBytes {
		return false
	}
	n := 0
	for len(payload) > 0 {
		e, size := frame.DecodeEntry(payload)
		if e.Kind == base.KindRangeDelete {
			n++
		}
		payload = payload[size:]
	}
	return n > most/memtable.RangeDeleteBytes
}
