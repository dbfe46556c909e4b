package tombstone

// Sizes in bytes of what lists are made of.
const (
	listBytes      = 88
	nestBytes      = 96
	fragmentBytes  = 72
	tombstoneBytes = 56
	boundBytes     = 24 // of a slice, without the bound it refers to
	wordBytes      = 8
)

// Memory returns how many bytes of the Go heap the list takes: the capacities of
// all its slices. The bytes of the bounds are not among them, as a list shares them
// with whoever gave them to Build: a page of a table, or the buffer of a memtable.
func (l *List) Memory() int64 {
	n := 0
	for ; l != nil; l = l.older {
		n += listBytes
		if l.nest != nil {
			n += l.nest.memory()
		} else {
			n += fragmentBytes*cap(l.frags) + wordBytes*l.total // flatten makes one array of all sequences
		}
	}
	return int64(n)
}

func (n *nest) memory() int {
	return nestBytes + boundBytes*cap(n.bounds) + wordBytes*(cap(n.start)+cap(n.seqs)) + tombstoneBytes*cap(n.spans)
}
