package cairn

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/txn"
)

// Range is the keys from Low up to, but not including, High. nil is no bound:
// Range{} is everything. A range whose Low is not below its High has no keys.
type Range struct{ Low, High []byte }

// Prefix returns the range of the keys that begin with p. Its Low is p itself, not a copy.
func Prefix(p []byte) Range { return Range{Low: p, High: base.PrefixEnd(p)} }

// internal returns the bounds of r as internal keys of the root bucket, appended to low and
// high where they are not constant.
func (r Range) internal(low, high []byte) ([]byte, []byte) {
	low = append(append(low, rootBucket...), r.Low...)
	if r.High == nil {
		return low, rootEnd
	}
	return low, append(append(high, rootBucket...), r.High...)
}

// iter makes an iterator over r, whose bounds it copies; nil if tx has ended.
func (tx *Tx) iter(r Range) *txn.Iter {
	t := tx.tx
	if t == nil {
		return nil
	}
	var low, high [64]byte // on the stack
	return t.NewIter(r.internal(low[:0], high[:0]))
}

// Iterator walks the keys of a range in both directions, as they were, the
// transaction's own writes included, when the iterator was made. It starts
// nowhere. A move reports whether it stands on a key afterwards; if not, it is at
// an end, and stays off until First, Last, Seek or SeekLT, or has failed, and stays
// so: make another one (Err, which View and Update do not look at: return it from their
// functions). It ends with its transaction, and is for the same goroutine. An open iterator that
// stands somewhere keeps the memory it reads from; one of a transaction that has
// written more than fits into memory keeps what the tables of that take, about two
// keys each, from when it is made. Close it when done. It must not be copied.
type Iterator struct {
	it  *txn.Iter
	key []byte // that was sought last, as an internal one
	err error
}

// Iter makes an iterator over r.
func (tx *Tx) Iter(r Range) *Iterator {
	it := tx.iter(r)
	if it == nil {
		return &Iterator{err: ErrTxClosed}
	}
	return &Iterator{it: it}
}

// First moves to the first key.
func (it *Iterator) First() bool { return it.moves() && it.stands(it.it.First()) }

// Last moves to the last key.
func (it *Iterator) Last() bool { return it.moves() && it.stands(it.it.Last()) }

// Next moves to the next key.
func (it *Iterator) Next() bool { return it.moves() && it.stands(it.it.Next()) }

// Prev moves to the previous key.
func (it *Iterator) Prev() bool { return it.moves() && it.stands(it.it.Prev()) }

// Seek moves to the first key >= key.
func (it *Iterator) Seek(key []byte) bool {
	return it.moves() && it.stands(it.it.Seek(it.internal(key)))
}

// SeekLT moves to the last key < key.
func (it *Iterator) SeekLT(key []byte) bool {
	return it.moves() && it.stands(it.it.SeekLT(it.internal(key)))
}

// internal returns a key as an internal one, in memory that the next call uses again.
func (it *Iterator) internal(key []byte) []byte {
	it.key = append(append(it.key[:0], rootBucket...), key...)
	return it.key
}

// moves reports whether a move is possible: the iterator is not closed, and has lost nothing.
func (it *Iterator) moves() bool { return it.err == nil && it.it != nil }

// stands reports whether a move led to a key: one that the system has lost ends the iteration (docs/LIMITS.md).
func (it *Iterator) stands(moved bool) bool {
	if !moved {
		return false
	}
	if _, ok := userKey(it.it.Key()); !ok {
		it.err = errLost
	}
	return it.err == nil
}

// Valid reports whether the iterator stands on a key.
func (it *Iterator) Valid() bool { return it.moves() && it.it.Valid() }

// Key returns the key, valid until the next move or Close; nil if the iterator stands nowhere.
func (it *Iterator) Key() []byte {
	if !it.Valid() {
		return nil
	}
	k, _ := userKey(it.it.Key())
	return k
}

// Value reads the value, valid until the next move or Close. Values that are not asked for
// are not read. ErrTxClosed if the iterator stands nowhere.
func (it *Iterator) Value() ([]byte, error) {
	switch {
	case it.err != nil:
		return nil, it.err
	case it.it == nil:
		return nil, ErrTxClosed
	}
	return it.it.Value()
}

// Err returns the error that ended the iteration, nil at a regular end. It is ErrTxClosed where the transaction has ended
// while the iterator stood on a key, or before it was moved, and after Close: use what that returns.
func (it *Iterator) Err() error {
	if it.err != nil || it.it == nil {
		return it.err
	}
	return it.it.Err()
}

// Close lets go of what the iterator holds and returns Err; nil if it holds nothing.
func (it *Iterator) Close() error {
	if it.it == nil {
		return nil
	}
	err := it.Err()
	it.it.Close()
	it.it.Recycle()
	it.it, it.err = nil, ErrTxClosed
	return err
}
