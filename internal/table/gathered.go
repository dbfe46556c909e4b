package table

import (
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/recycle"
)

// gathered is the memory in which a Writer gathers a block. It is recycled, whoever writes
// the next table.
type gathered struct {
	keys   block.KeyBuilder
	values []byte
	fence  []byte
	last   []byte // key of the row before

	encoded []byte // scratch
}

var gatherings recycle.Pool[gathered]

// recycle empties g and gives it back.
func (g *gathered) recycle() {
	g.keys.Reset()
	g.values, g.fence, g.last = g.values[:0], g.fence[:0], g.last[:0]
	if cap(g.values) <= mostRecycled {
		gatherings.Put(g)
	}
}

// addValue adds a value to a block that is to have blockBytes: memory for all of them is
// taken at once, as growing by and by would take twice as much.
func (g *gathered) addValue(value []byte, blockBytes int) {
	if cap(g.values) == 0 {
		g.values = make([]byte, 0, blockBytes+len(value))
	}
	g.values = append(g.values, value...)
}
