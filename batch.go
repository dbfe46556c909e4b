package cairn

import (
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// Batch collects writes that DB.Write commits as one, in the order they were
// given. It copies what it is given, to memory of its own that Options.Memory does
// not count: use a transaction, or many batches, for more than memory should hold. A
// Batch is for one goroutine at a time. What is added to it while it is written is left out, and the next DB.Write of it
// says so (ErrBatchChanged). It must not be copied: a copy of one that holds
// something is the same batch.
type Batch struct {
	_       noCopy
	entries frame.Entries
	calls   int // of Put, Delete and DeleteRange
	err     error
}

// noCopy has go vet tell of copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// NewBatch returns an empty batch.
func NewBatch() *Batch { return &Batch{} }

// Put adds a put. A key that is empty, or a key or value over the limits, is
// reported by DB.Write, which then writes nothing of the batch.
func (b *Batch) Put(key, value []byte) {
	if b.check(checkPair(key, value)) {
		b.added(b.entries.Add(base.KindPut, rootBucket, key, value))
	}
}

// Delete adds a delete.
func (b *Batch) Delete(key []byte) {
	if b.check(checkKey(key)) {
		b.added(b.entries.Add(base.KindDelete, rootBucket, key, nil))
	}
}

// DeleteRange adds the removal of every key in r, those put by the batch before
// included. An empty range, one whose Low is not below its High, adds nothing; a bound that is
// too long for a key is ErrKeyTooLarge, though, as in Tx.DeleteRange.
func (b *Batch) DeleteRange(r Range) {
	if !b.check(checkRange(r)) {
		return
	}
	low, high := r.internal(nil, nil)
	if string(low) < string(high) {
		b.added(b.entries.Add(base.KindRangeDelete, nil, low, high))
	}
}

// check begins a write, which err refuses if it is not nil.
func (b *Batch) check(err error) bool {
	b.calls++
	b.fail(err)
	return err == nil
}

func (b *Batch) fail(err error) {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("write %d of the batch: %w", b.calls, err)
	}
}

// added notes that nothing was added where ok is false: somebody writes the batch.
func (b *Batch) added(ok bool) {
	if !ok {
		b.fail(ErrBatchChanged)
	}
}

// Len returns the number of writes.
func (b *Batch) Len() int { return b.entries.Len() }

// Reset empties the batch and forgets its error. Its memory serves whatever batch comes
// next; that of a large batch which is dropped without Reset is fresh memory for the next.
func (b *Batch) Reset() {
	b.entries.Reset()
	b.calls, b.err = 0, nil
}
