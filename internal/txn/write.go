package txn

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
)

// countStep is by how much the writes of a transaction grow between two counts to the budget. Those that stay smaller
// than keptBytes touch nothing that others share.
const countStep = 64 << 10

// heapFactor is how much memory the Go heap takes for what is in use of it.
const heapFactor = 2

// recordBytes is about what the index of a transaction's writes takes for each.
const recordBytes = 32

// What one transaction may gather while all of them together hold more than an
// eighth of Memory, and more than a quarter. Less would make tables tiny.
const (
	scarceGather = 256 << 10
	leastGather  = 64 << 10
)

// gatherBytes is how much a transaction may hold now before it writes a private
// run: Config.GatherBytes, or less while many hold much.
func gatherBytes(e *engine.Engine) int {
	limit := e.Config().GatherBytes()
	switch held := e.CountedWrites(); { // twofold, for the heap
	case held > e.Config().Memory/2:
		return min(limit, leastGather)
	case held > e.Config().Memory/4:
		return min(limit, scarceGather)
	}
	return limit
}

// Put sets key's value.
func (tx *Tx) Put(key, value []byte) error { return tx.write(base.KindPut, key, value) }

// Delete removes key.
func (tx *Tx) Delete(key []byte) error { return tx.write(base.KindDelete, key, nil) }

// DeleteRange removes the keys in [low, high).
func (tx *Tx) DeleteRange(low, high []byte) error {
	if tx.writable && bytes.Compare(low, high) >= 0 {
		return nil
	}
	return tx.write(base.KindRangeDelete, low, high)
}

// write takes a write, or returns the error of the first that could not be done.
func (tx *Tx) write(kind base.Kind, key, value []byte) error {
	if !tx.writable {
		return base.ErrReadOnly
	}
	if tx.failed == nil {
		tx.failed = tx.add(kind, key, value)
	}
	return tx.failed
}

func (tx *Tx) add(kind base.Kind, key, value []byte) error {
	n := len(key) + len(value)
	if tx.held()+n > tx.room {
		if err := tx.makeRoom(n); err != nil {
			return err
		}
	}
	at := len(tx.buf)
	tx.buf = frame.AppendEntry(tx.buf, kind, key, value)
	tx.writes.SetBuffer(tx.buf)
	e, _ := frame.DecodeEntry(tx.buf[at:])
	tx.writes.Insert(at, &e, base.Hash(key))
	if n > countStep && tx.held() > gatherBytes(tx.e) {
		return tx.spill() // too large to be kept until the next write
	}
	return nil
}

// held is what the writes take that are in memory.
func (tx *Tx) held() int { return len(tx.buf) + tx.indexed() }

// indexed is what of that is not the entries themselves.
func (tx *Tx) indexed() int { return indexBytes(tx.writes) + tx.adoptedIndex }

func indexBytes(t *memtable.Table) int { return recordBytes*t.Len() + t.RangeDeleteBytes() }

// makeRoom is called before a write of n bytes that goes beyond room.
func (tx *Tx) makeRoom(n int) error {
	limit := gatherBytes(tx.e)
	if len(tx.buf) > 0 && tx.held()+n > limit {
		if err := tx.spill(); err != nil {
			return err
		}
	}
	if room := tx.roomWith(n); cap(tx.buf) < room {
		tx.grow(room, limit)
	}
	tx.count(n)
	return nil
}

// roomWith returns how much the writes may take, with n bytes to come, before they are counted again.
func (tx *Tx) roomWith(n int) int { return (tx.held()+n)/countStep*countStep + countStep }

// grow makes the buffer one of at least need bytes: that of a transaction before, or one twice as large, as long as
// that does not go beyond what there is to be gathered.
func (tx *Tx) grow(need, limit int) {
	buf := tx.e.TakeWrites(need)
	if buf == nil {
		buf = make([]byte, 0, max(need, min(2*cap(tx.buf), limit+countStep)))
	}
	tx.buf = append(buf, tx.buf...)
}

// count counts to the budget what the writes take, with n bytes to come.
func (tx *Tx) count(n int) {
	tx.countBytes(max(cap(tx.buf), len(tx.buf)+n) + tx.indexed())
	tx.room = tx.roomWith(n)
}

// countBytes counts n bytes of the Go heap to the budget, in place of those before.
func (tx *Tx) countBytes(n int) {
	now := heapFactor * int64(n)
	tx.e.CountWrites(now - tx.counted)
	tx.counted = now
}
