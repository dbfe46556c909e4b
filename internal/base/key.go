package base

import "github.com/cespare/xxhash/v2"

// Limits of what a caller may store. Anything over a limit is refused before a byte is written.
const (
	MaxUserKeyBytes = 64<<10 - 1
	MaxValueBytes   = 1 << 30
)

// Kind says what an entry does to its key. The values are part of the log and table formats.
type Kind uint8

const (
	// KindDelete hides every older version of the key.
	KindDelete Kind = 0
	// KindPut sets the key's value.
	KindPut Kind = 1
	// KindRangeDelete hides every version older than itself of the keys in [key, value).
	KindRangeDelete Kind = 2
)

// Known reports whether k is a kind of format version 1.
func (k Kind) Known() bool { return k <= KindRangeDelete }

func (k Kind) String() string {
	switch k {
	case KindDelete:
		return "delete"
	case KindPut:
		return "put"
	case KindRangeDelete:
		return "rangedelete"
	}
	return "unknown"
}

// Sequence numbers count entries, not commits: a commit of n entries takes n
// consecutive numbers and becomes visible as a whole when its last one does.
// Within one key the entry with the greater sequence wins, so the order of
// operations inside a commit needs no rule of its own.
const (
	// MaxSeq is the greatest sequence a committed entry can have.
	MaxSeq uint64 = 1<<56 - 1
	// SeqPrivate marks entries of a transaction that has not committed: its i-th
	// entry has the sequence SeqPrivate|i, greater than any committed one.
	SeqPrivate uint64 = 1 << 63
)

// Visibility is what a reader may see: committed entries up to Snapshot, and of
// its own transaction the entries below PrivateLimit (zero: none).
type Visibility struct {
	Snapshot     uint64
	PrivateLimit uint64 // SeqPrivate|n: private entries 0..n-1 are seen
}

// Sees reports whether an entry with sequence seq is visible.
func (v Visibility) Sees(seq uint64) bool {
	return seq <= v.Snapshot || (seq >= SeqPrivate && seq < v.PrivateLimit)
}

// Hash is the 64-bit hash of an internal key that memtables, point indexes and
// read sets share. It is computed once per operation and never stored in a file.
func Hash(key []byte) uint64 { return xxhash.Sum64(key) }

// Iterator walks entries in order of (key ascending, sequence descending). It
// starts unpositioned. A positioning method reports whether it stands on an
// entry afterwards; false means the end or an error, and Err tells which.
// Key is valid until the next positioning call, which may overwrite it (so it is not what that is
// given); Value likewise. Next on an
// iterator that ran off the end stays off the end, as does Prev off the front.
// An Iterator is for one goroutine.
type Iterator interface {
	First() bool
	Last() bool
	// SeekGE moves to the first entry whose key is >= key (its newest version first).
	SeekGE(key []byte) bool
	// SeekLT moves to the last entry whose key is < key (its oldest version).
	SeekLT(key []byte) bool
	Next() bool
	Prev() bool
	Valid() bool
	Key() []byte
	Seq() uint64
	Kind() Kind
	// Value returns the value lazily: nothing is read from a value page before it is called.
	Value() ([]byte, error)
	Err() error
	Close() error
}
