package cairn

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/txn"
)

// Tx is a transaction: it reads the store as it was when the transaction began,
// with its own writes on top. Transactions are serializable, phantoms included,
// and any number may run at once. A Tx is for one goroutine at a time.
//
// Slices returned by Get last until the transaction ends; keys and values of
// scans and iterators until the next step. None may be modified. Slices passed in
// may be reused as soon as the call returns; bounds of Keys, Scan and ScanBackward when
// the loop has begun.
type Tx struct {
	tx        *txn.Tx // nil once the transaction has ended
	seq       uint64
	commitSeq uint64
	managed   bool
	taken     atomic.Bool // somebody ends it, or has; of one that is managed it is View or Update
	err       error
}

// handles are transactions as the functions of View and Update hold them, made several at a time.
// None is used twice: one that is kept beyond its end must not become another's.
type handles struct {
	made []Tx
	n    int // were made the last time
}

// newHandle returns tx as callers hold it. Only those that surely end are made together: whoever
// keeps one, though it has ended, keeps all, and the collector would not find one that is forgotten.
func newHandle(tx *txn.Tx, managed bool) *Tx {
	if !managed {
		return new(Tx)
	}
	h, _ := tx.Kept.(*handles)
	if h == nil {
		h = new(handles)
		tx.Kept = h
	}
	return h.next()
}

func (h *handles) next() *Tx {
	if len(h.made) == 0 {
		h.n = min(2*h.n+1, 64)
		h.made = make([]Tx, h.n)
	}
	tx := &h.made[0]
	h.made = h.made[1:]
	return tx
}

// rootBucket is the key prefix of the root bucket (internal/base/bucketkey.go).
var rootBucket = base.AppendBucketPrefix(nil, 0)

// rootEnd is behind every key of the root bucket.
var rootEnd = base.PrefixEnd(rootBucket)

// internal returns key with its bucket's prefix, valid until the next call for t.
func internal(t *txn.Tx, key []byte) []byte { return t.Key(rootBucket, key) }

// ready returns what is to be used with key, or why it cannot be.
func (tx *Tx) ready(key []byte) (*txn.Tx, error) {
	t := tx.tx
	if t == nil {
		return nil, ErrTxClosed
	}
	return t, checkKey(key)
}

// Get returns the value of key, valid until the transaction ends: to read it later may give other bytes, or end the
// process with a memory fault. A present empty
// value is not nil. ErrNotFound if there is none.
func (tx *Tx) Get(key []byte) ([]byte, error) {
	t, err := tx.ready(key)
	if err != nil {
		return nil, err
	}
	return t.Get(internal(t, key))
}

// Has reports whether key has a value, without reading it.
func (tx *Tx) Has(key []byte) (bool, error) {
	t, err := tx.ready(key)
	if err != nil {
		return false, err
	}
	return t.Has(internal(t, key))
}

// Put sets the value of key.
func (tx *Tx) Put(key, value []byte) error {
	t, err := tx.ready(key)
	if err != nil {
		return err
	}
	if err := checkPair(key, value); err != nil {
		return err
	}
	return tx.note(t.Put(internal(t, key), value))
}

// PutIfAbsent sets the value of key unless it has one, which is not read, and reports whether it did.
func (tx *Tx) PutIfAbsent(key, value []byte) (bool, error) {
	return tx.CompareAndSwap(key, nil, value)
}

// CompareAndSwap sets key's value to new if it is old now, and reports whether it
// did. old nil means: only if the key is absent; old empty but not nil: only if it
// has an empty value. new nil sets an empty value; it does not delete.
func (tx *Tx) CompareAndSwap(key, old, new []byte) (bool, error) {
	t, err := tx.ready(key)
	if err != nil {
		return false, err
	}
	if !t.Writable() { // also where nothing would be written
		return false, ErrReadOnly
	}
	if is, err := tx.is(key, old); err != nil || !is {
		return false, err
	}
	if err := tx.Put(key, new); err != nil {
		return false, err
	}
	return true, nil
}

// is reports whether key's value is v, or, where v is nil, whether it has none.
func (tx *Tx) is(key, v []byte) (bool, error) {
	if v == nil {
		has, err := tx.Has(key)
		return !has, err
	}
	now, err := tx.Get(key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return bytes.Equal(now, v), err
}

// Delete removes key. Deleting an absent key is not an error.
func (tx *Tx) Delete(key []byte) error {
	t, err := tx.ready(key)
	if err != nil {
		return err
	}
	return tx.note(t.Delete(internal(t, key)))
}

// DeleteRange removes every key in r. Its cost does not depend on how many there
// are. An empty range, one whose Low is not below its High, is no error; a bound that
// is too long for a key is ErrKeyTooLarge, which ranges to be read do not mind.
func (tx *Tx) DeleteRange(r Range) error {
	t := tx.tx
	if t == nil {
		return ErrTxClosed
	}
	if err := checkRange(r); err != nil {
		return err
	}
	return tx.note(t.DeleteRange(r.internal(nil, nil)))
}

// note makes an I/O error of a write stick: a transaction that lost one takes no more, and does not commit.
func (tx *Tx) note(err error) error {
	if err != nil && !errors.Is(err, ErrReadOnly) {
		tx.stick(err)
	}
	return err
}

// errLost is what ends a scan that comes to a record that is none any more.
var errLost = base.Corruptf("log", -1, "the system has lost what was committed: the device could not be written to")

// userKey returns a key without its bucket. It has none if the memory of a mapped log was lost (docs/LIMITS.md).
func userKey(k []byte) (key []byte, ok bool) {
	if len(k) < len(rootBucket) {
		return nil, false
	}
	return k[len(rootBucket):], true
}

// Keys yields the keys in r in ascending order. It never touches values. Like Scan
// and ScanBackward it yields the keys as they are when the loop begins: the
// transaction may write in the loop, and the loop does not see it.
func (tx *Tx) Keys(r Range) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		it := tx.begin(r)
		if it == nil {
			return
		}
		defer tx.finish(it)
		for ok := it.First(); ok; ok = it.Next() {
			k, ok := userKey(it.Key())
			if !ok {
				tx.stick(errLost)
			}
			if !ok || !yield(k) {
				return
			}
		}
	}
}

// Scan yields the pairs in r in ascending order of keys. An I/O error ends the
// loop and sticks in Err.
func (tx *Tx) Scan(r Range) iter.Seq2[[]byte, []byte] {
	return tx.pairs(r, (*txn.Iter).First, (*txn.Iter).Next)
}

// ScanBackward yields the pairs in r in descending order of keys. An I/O error
// ends the loop and sticks in Err.
func (tx *Tx) ScanBackward(r Range) iter.Seq2[[]byte, []byte] {
	return tx.pairs(r, (*txn.Iter).Last, (*txn.Iter).Prev)
}

func (tx *Tx) pairs(r Range, first, next func(*txn.Iter) bool) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		it := tx.begin(r)
		if it == nil {
			return
		}
		defer tx.finish(it)
		for ok := first(it); ok; ok = next(it) {
			k, v, err := it.Pair()
			if err != nil {
				return
			}
			k, ok := userKey(k)
			if !ok {
				tx.stick(errLost)
			}
			if !ok || !yield(k, v) {
				return
			}
		}
	}
}

// begin makes the iterator of a scan; nil, and an error that sticks, if tx has ended.
func (tx *Tx) begin(r Range) *txn.Iter {
	it := tx.iter(r)
	if it == nil {
		tx.stick(ErrTxClosed)
	}
	return it
}

// finish closes a scan's iterator, which only the scan has known, and keeps its error.
func (tx *Tx) finish(it *txn.Iter) {
	if err := it.Err(); err != nil {
		tx.stick(err)
	}
	it.Close()
	it.Recycle()
}

// stick keeps the first error of a scan, or of a write that was accepted.
func (tx *Tx) stick(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// Err returns the first error that a scan met, or a write that was accepted but
// could not be done (I/O, ErrLimit), or of SetDurability. View returns it; Commit and Update refuse to
// commit with it. After that of a write all writes return it. A write refused for its arguments changes nothing and does
// not count.
func (tx *Tx) Err() error { return tx.err }

// Seq returns the sequence of the snapshot the transaction reads.
func (tx *Tx) Seq() uint64 { return tx.seq }

// CommitSeq returns, after a successful Commit, the sequence the commit was given:
// greater than that of every commit before it. Before, it is zero; where nothing was
// written it is Seq.
func (tx *Tx) CommitSeq() uint64 { return tx.commitSeq }

// SetDurability chooses the durability of this transaction's commit. A value that
// does not exist makes the commit fail with ErrInvalidOption. Where nothing was written, as by a PutIfAbsent that has
// found its key, or a DeleteRange of an empty range, Durable makes nothing durable, nor what was read of Relaxed
// commits: DB.Sync does.
func (tx *Tx) SetDurability(d Durability) {
	if d > Relaxed {
		tx.note(fmt.Errorf("%w: unknown Durability %d", ErrInvalidOption, d))
	} else if t := tx.tx; t != nil {
		t.SetDurable(d == Durable)
	}
}

// Commit ends the transaction and makes its writes visible, as its durability
// demands; if there are none nothing is synced (SetDurability). After an error nothing of it is visible; after ErrCommitUnknown all of it may
// be once the store is opened again. ErrConflict: another commit
// changed what this one had read. Of a read-only transaction it is Rollback, and returns Err.
func (tx *Tx) Commit() error {
	if tx.managed && tx.tx != nil {
		return ErrTxManaged
	}
	return tx.commit()
}

func (tx *Tx) commit() error {
	if tx.err != nil && tx.end() {
		return tx.err
	}
	t := tx.take()
	if t == nil {
		return ErrTxClosed
	}
	seq, err := t.Commit()
	t.Recycle()
	if err == nil {
		tx.commitSeq = seq
	}
	return err
}

// Rollback ends the transaction and forgets its writes. After Commit or Rollback
// it does nothing.
func (tx *Tx) Rollback() error {
	if tx.managed && tx.tx != nil {
		return ErrTxManaged
	}
	tx.end()
	return nil
}

// take returns what is to be ended; nil if somebody else ends it or has. Whoever does has it alone: its memory is given to
// another transaction, and two that do so at once would break both.
func (tx *Tx) take() *txn.Tx {
	if !tx.managed && tx.taken.Swap(true) {
		return nil
	}
	t := tx.tx
	tx.tx = nil
	return t
}

// end ends the transaction, unless it has ended, and reports whether it did.
func (tx *Tx) end() bool {
	t := tx.take()
	if t == nil {
		return false
	}
	t.Rollback()
	t.Recycle()
	return true
}
