package cairn

import (
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// Batch collects writes that DB.Write commits as one, in the order they were
// given. It copies what it is given, to memory of its own that Options.Memory does
// not count: use a transaction, or many batches, for more than memory should hold. A
// Batch is for one goroutine at a time.
type Batch struct {
	payload []byte
	n       int
	key     []byte // scratch
	err     error
}

// NewBatch returns an empty batch.
func NewBatch() *Batch { return &Batch{} }

// Put adds a put. A key that is empty, or a key or value over the limits, is
// reported by DB.Write, which then writes nothing of the batch.
func (b *Batch) Put(key, value []byte) {
	if b.check(checkPair(key, value)) {
		b.add(base.KindPut, key, value)
	}
}

// Delete adds a delete.
func (b *Batch) Delete(key []byte) {
	if b.check(checkKey(key)) {
		b.add(base.KindDelete, key, nil)
	}
}

// DeleteRange adds the removal of every key in r, those put by the batch before
// included. An empty range, one whose Low is not below its High, adds nothing.
func (b *Batch) DeleteRange(r Range) {
	if !b.check(checkRange(r)) {
		return
	}
	low, high := r.internal(rootBucket)
	if string(low) < string(high) {
		b.payload = frame.AppendEntry(b.payload, base.KindRangeDelete, low, high)
		b.n++
	}
}

func (b *Batch) check(err error) bool {
	if b.err == nil && err != nil {
		b.err = fmt.Errorf("write %d of the batch: %w", b.n+1, err)
	}
	return err == nil
}

func (b *Batch) add(kind base.Kind, key, value []byte) {
	b.key = append(append(b.key[:0], rootBucket...), key...)
	b.payload = frame.AppendEntry(b.payload, kind, b.key, value)
	b.n++
}

// Len returns the number of writes.
func (b *Batch) Len() int { return b.n }

// Reset empties the batch and forgets its error; it keeps its memory for reuse.
func (b *Batch) Reset() { b.payload, b.n, b.err = b.payload[:0], 0, nil }
