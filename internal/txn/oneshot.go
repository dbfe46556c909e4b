package txn

import (
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/frame"
)

// scratch is what a one-shot call encodes its key and entry into.
type scratch struct {
	key   []byte
	entry []byte
	w     engine.Write
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratchBytes is the largest buffer that goes back to the pool.
const maxScratchBytes = 64 << 10

func (s *scratch) recycle() {
	if cap(s.entry) > maxScratchBytes {
		s.entry = nil
	}
	s.w = engine.Write{}
	scratches.Put(s)
}

// internal joins a bucket's prefix and a key.
func (s *scratch) internal(bucket, key []byte) []byte {
	s.key = append(append(s.key[:0], bucket...), key...)
	return s.key
}

// Put sets a key's value as a commit of its own.
func Put(e *engine.Engine, bucket, key, value []byte) error {
	return one(e, base.KindPut, bucket, key, value)
}

// Delete removes a key as a commit of its own.
func Delete(e *engine.Engine, bucket, key []byte) error {
	return one(e, base.KindDelete, bucket, key, nil)
}

func one(e *engine.Engine, kind base.Kind, bucket, key, value []byte) error {
	if frame.MaxEntryHeaderBytes+len(bucket)+len(key)+len(value) > e.Config().SpillBytes() {
		e.BeginLarge() // before there is a copy of the value
		defer e.EndLarge()
	}
	s := scratches.Get().(*scratch)
	defer s.recycle()
	s.entry = frame.AppendEntry(s.entry[:0], kind, s.internal(bucket, key), value)
	return apply(e, &s.w, s.entry, 1)
}

// Apply commits encoded entries in their order.
func Apply(e *engine.Engine, payload []byte, count int) error {
	if len(payload) > e.Config().SpillBytes() {
		e.BeginLarge()
		defer e.EndLarge()
	}
	return apply(e, &engine.Write{}, payload, count)
}

// apply commits entries. For more than SpillBytes the caller has the turn.
func apply(e *engine.Engine, w *engine.Write, payload []byte, count int) error {
	if err := e.Hold(); err != nil {
		return err
	}
	defer e.Release()
	if e.Config().ReadOnly {
		return base.ErrReadOnly
	}
	if count == 0 {
		return nil
	}
	if most := e.Config().SpillBytes(); len(payload) > most || manyRangeDeletes(payload, count, most) {
		return applyLarge(e, payload)
	}
	w.Payload, w.Count, w.Durable = payload, count, !e.Config().Relaxed
	_, err := e.Commit(w)
	return err
}

// applyLarge commits more than a frame, or range deletes than a memtable, should
// hold through a transaction, which spills.
func applyLarge(e *engine.Engine, payload []byte) error {
	tx, err := Begin(e, true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for len(payload) > 0 {
		if len(tx.buf) > 0 {
			if err := tx.spill(); err != nil {
				return err
			}
		}
		payload = payload[tx.adopt(payload):]
	}
	_, err = tx.Commit()
	return err
}

// adopt takes entries from the front of payload, where they stay, as the writes
// of a transaction that has none in memory, and returns how many bytes these are.
// They are counted to the budget as any writes are.
func (tx *Tx) adopt(payload []byte) int {
	tx.lent = true // buf is not the transaction's
	at := 0
	for at < len(payload) && (at == 0 || tx.held() < tx.e.Config().GatherBytes()) {
		ent, n := frame.DecodeEntry(payload[at:])
		tx.buf = payload[: at+n : at+n]
		tx.writes.SetBuffer(tx.buf)
		tx.writes.Insert(at, ent, base.Hash(ent.Key))
		at += n
	}
	tx.count(0)
	return at
}
