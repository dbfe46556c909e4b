package txn

// readStep is how many bytes the read set grows or shrinks by before the budget is
// told: what most transactions read is not worth an account.
const readStep = 16 << 10

// noteKey notes that key was read.
func (tx *Tx) noteKey(key []byte, hash uint64) {
	tx.reads.AddKey(key, hash)
	tx.countReads(tx.reads.Memory())
}

// noteRange notes that every key in [low, high) was looked at.
func (tx *Tx) noteRange(low, high []byte) {
	tx.reads.AddRange(low, high)
	tx.countReads(tx.reads.Memory())
}

// countReads counts the read set, which holds so many bytes now, to the budget, in
// steps. end gives back what is counted.
func (tx *Tx) countReads(holds int) {
	if d := int64(holds) - tx.readBytes; d >= readStep || d <= -readStep {
		tx.e.CountWrites(d)
		tx.readBytes += d
	}
}

// What read sets may hold beyond their limit: as long as all that transactions hold is no more than a part in grantShare
// of Memory, and one that goes first a part in firstShare.
const (
	grantShare = 16
	firstShare = 4
)

// reading is a transaction as its read set sees it. It implements mvcc.Grants.
type reading Tx

func (r *reading) MayHold(bytes int) bool {
	memory := r.e.Config().Memory
	if r.first {
		return int64(bytes) <= memory/firstShare
	}
	more := int64(bytes) - r.readBytes
	r.e.CountWrites(more) // before it is known, since others may ask as well
	if r.e.CountedWrites() > memory/grantShare {
		r.e.CountWrites(-more)
		return false
	}
	r.readBytes += more
	return true
}

// GoFirst lets a transaction that others have made fail again and again remember more of what it reads, so that what it
// has not read is no conflict. There is one at a time. It has read nothing yet.
func (tx *Tx) GoFirst() { tx.first = true }
