package txn

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// manyRangeDeletes reports whether the count entries in parts have so many range
// deletes that a memtable would take more than about that many bytes of the Go heap
// for them. Few batches are large enough for anything to be looked at.
func manyRangeDeletes(parts [][]byte, count, most int) bool {
	if count <= most/memtable.RangeDeleteBytes {
		return false
	}
	n := 0
	for _, part := range parts {
		for len(part) > 0 {
			e, size := frame.DecodeEntry(part)
			if size == 0 {
				return true // what is no entry is refused where they are many
			}
			if e.Kind == base.KindRangeDelete {
				n++
			}
			part = part[size:]
		}
	}
	return n > most/memtable.RangeDeleteBytes
}
