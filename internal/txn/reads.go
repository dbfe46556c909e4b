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
