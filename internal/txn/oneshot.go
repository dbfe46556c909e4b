package txn

import (
	"errors"
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/memtable"
	"github.com/cairndb/cairn/internal/prefetch"
)

// scratch is what a one-shot call commits with.
type scratch struct {
	entry [2][]byte // of one encoded entry all, or what stands before the value, and the caller's value
	w     engine.Write
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// maxScratchBytes is the largest buffer that goes back to the pool.
const maxScratchBytes = 64 << 10

func (s *scratch) recycle() {
	if cap(s.entry[0]) > maxScratchBytes {
		s.entry[0] = nil
	}
	s.w.Reset()
	s.entry[1] = nil
	scratches.Put(s)
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
	prefetch.Lines(value[:min(len(value), prefetchBytes)]) // while the commit is prepared
	n, most := frame.MaxEntryHeaderBytes+len(bucket)+len(key)+len(value), e.Config().SpillBytes()
	if n <= most {
		err := encodeAndApply(e, kind, bucket, key, value, most)
		if !takesLessInTables(n, err) {
			return err
		}
		most = frame.MaxShortBytes
	}
	e.BeginLarge() // before there is a copy of the value
	defer e.EndLarge()
	copied := heapFactor * int64(len(value))
	e.CountWrites(copied)
	defer e.CountWrites(-copied)
	return encodeAndApply(e, kind, bucket, key, value, most)
}

func encodeAndApply(e *engine.Engine, kind base.Kind, bucket, key, value []byte, most int) error {
	s := scratches.Get().(*scratch)
	defer s.recycle()
	s.encode(kind, bucket, key, value, most)
	return apply(e, &s.w, s.entry[:], len(s.entry[0])+len(s.entry[1]), 1, most)
}

// takesLessInTables reports whether a commit of n bytes for which the log has no space, as err says, may
// fit the disk as tables, which are compressed and need no space put aside for a flush. It has not been
// committed, and cannot be there when the store is opened again.
func takesLessInTables(n int, err error) bool {
	return n > frame.MaxShortBytes && errors.Is(err, base.ErrNoSpace) &&
		!errors.Is(err, base.ErrCommitUnknown) && !errors.Is(err, base.ErrPoisoned)
}

const (
	// lentBytes is how long a value is that goes from the caller's memory to the log.
	lentBytes = 64
	// prefetchBytes of it are brought on their way first: more would have to wait for each other.
	prefetchBytes = 1 << 10
)

// encode encodes the entry, without a copy of a long value, unless it takes more than a
// frame should hold.
func (s *scratch) encode(kind base.Kind, bucket, key, value []byte, most int) {
	s.entry[0] = s.entry[0][:0]
	if n := len(value); n < lentBytes || frame.MaxEntryHeaderBytes+len(bucket)+len(key)+n > most {
		s.entry[0] = frame.AppendPrefixed(s.entry[0], kind, bucket, key, value)
		return
	}
	s.entry[0], s.entry[1] = frame.AppendHead(s.entry[0], kind, bucket, key, len(value)), value
}

// Apply commits entries in their order.
func Apply(e *engine.Engine, entries *frame.Entries) error {
	lent := entries.Lend()
	defer lent.Return()
	n, count := lent.Size()
	most := mostInFrame(e, count)
	s := scratches.Get().(*scratch)
	defer s.recycle()
	if n <= most {
		err := apply(e, &s.w, lent.Parts(), n, count, most)
		if !takesLessInTables(n, err) {
			return err
		}
		most = frame.MaxShortBytes
	}
	e.BeginLarge()
	defer e.EndLarge()
	return apply(e, &s.w, lent.Parts(), n, count, most)
}

// mostInFrame returns how many bytes of entries, count of them, go through the log as one frame: of very small
// ones fewer, since a memtable and its flush take as much again for each.
func mostInFrame(e *engine.Engine, count int) int {
	most := e.Config().SpillBytes()
	return max(most-recordBytes*min(count, most/recordBytes), min(most, frame.MaxShortBytes))
}

// apply commits count entries of n bytes: as a frame of the log, or as tables if they are more
// than most, and then the caller has the turn.
func apply(e *engine.Engine, w *engine.Write, parts [][]byte, n, count, most int) error {
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
	if n > most || manyRangeDeletes(parts, count, min(most, frame.MaxShortBytes)) {
		return applyLarge(e, parts, n, count)
	}
	w.Entries, w.Bytes, w.Count, w.Durable = parts, n, count, !e.Config().Relaxed
	_, err := e.Commit(w)
	return err
}

// applyLarge commits more than a frame, or range deletes than a memtable, should
// hold through a transaction. Its writes are sorted where they stand, and only their
// index is new in memory; so they become one private run unless they are very many. They are count entries of n bytes, or not
// what they were.
func applyLarge(e *engine.Engine, parts [][]byte, n, count int) error {
	tx, err := Begin(e, true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, part := range parts {
		for len(part) > 0 {
			if tx.indexed() >= gatherBytes(e) {
				if err := tx.spill(); err != nil {
					return err
				}
			}
			bytes, entries := tx.adopt(part)
			if bytes == 0 {
				return base.ErrBatchChanged
			}
			part, n, count = part[bytes:], n-bytes, count-entries
		}
	}
	if n != 0 || count != 0 {
		return base.ErrBatchChanged
	}
	if err := tx.spill(); err != nil {
		return err
	}
	_, err = tx.Commit()
	return err
}

// adopt takes entries from the front of payload, where they stay, as the newest writes of
// a transaction, and returns how many bytes and entries these are: at least one, unless there is none, and as many as
// may be indexed in memory. Only the index is counted to the budget: the payload is the
// caller's. The transaction spills before it reads or commits.
func (tx *Tx) adopt(payload []byte) (bytes, entries int) {
	if tx.writes.Len() > 0 {
		tx.adopted, tx.adoptedIndex = append(tx.adopted, tx.writes), tx.indexed()
		tx.writes = memtable.NewGrowing(tx.writes.LastSeq() + 1)
	}
	tx.lent = true // buf is not the transaction's
	limit := gatherBytes(tx.e)
	at := 0
	for at < len(payload) && (at == 0 || tx.indexed() < limit) {
		ent, n := frame.DecodeEntry(payload[at:])
		if n == 0 {
			break
		}
		tx.buf = payload[: at+n : at+n]
		tx.writes.SetBuffer(tx.buf)
		tx.writes.Insert(at, &ent, base.Hash(ent.Key))
		at, entries = at+n, entries+1
	}
	tx.countBytes(tx.indexed())
	return at, entries
}
