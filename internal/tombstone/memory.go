package tombstone

import "reflect"

// Bytes is how many bytes one Tombstone takes, without its bounds.
var Bytes = int(sizeOf[Tombstone]())

// Sizes in bytes of what else lists are made of.
var (
	listBytes     = int(sizeOf[List]())
	nestBytes     = int(sizeOf[nest]())
	fragmentBytes = int(sizeOf[Fragment]())
	boundBytes    = int(sizeOf[[]byte]()) // without the bound it refers to
	startBytes    = int(sizeOf[int]())
)

const seqBytes = 8

func sizeOf[T any]() uintptr { return reflect.TypeFor[T]().Size() }

// Memory returns how many bytes of the Go heap the list takes: the capacities of
// all its slices. The bytes of the bounds are not among them, as a list shares them
// with whoever gave them to Build: a page of a table, or the buffer of a memtable.
func (l *List) Memory() int64 {
	if l == nil {
		return 0
	}
	n := listBytes + fragmentBytes*cap(l.frags)
	if l.nest != nil {
		n += l.nest.memory()
	} else {
		n += seqBytes * l.total // flatten makes one array of all sequences
	}
	return int64(n)
}

func (n *nest) memory() int {
	return nestBytes + boundBytes*cap(n.bounds) + startBytes*cap(n.start) + seqBytes*cap(n.seqs) + Bytes*cap(n.spans)
}
