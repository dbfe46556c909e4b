package base

import "bytes"

// TableMeta is what the rest of the engine knows of a table without opening it.
// It is plain data and immutable once published in a version.
type TableMeta struct {
	Num  uint64 // file number
	File ID     // identity in the file's header; binds the file to this record
	Size int64  // bytes on disk

	// Bounds of the keys, extended by range tombstones. Largest is inclusive
	// unless LargestExclusive, which is so when a tombstone's end sets it.
	Smallest, Largest []byte
	LargestExclusive  bool

	MinSeq, MaxSeq uint64 // over entries and tombstones
	Entries        uint64 // puts and deletes
	Deletes        uint64 // of these, deletes
	RangeDeletes   uint64 // range tombstones
	RawBytes       int64  // key and value bytes before compression

	// GlobalSeq, if not zero, is the sequence of every row and tombstone of the
	// table, whatever the file says: the table was written before its
	// transaction had a sequence.
	GlobalSeq uint64
}

// Contains reports whether key lies within the table's bounds.
func (m *TableMeta) Contains(key []byte) bool {
	return bytes.Compare(key, m.Smallest) >= 0 && !m.EndsBefore(key)
}

// EndsBefore reports whether every key of the table is smaller than key.
func (m *TableMeta) EndsBefore(key []byte) bool {
	c := bytes.Compare(m.Largest, key)
	return c < 0 || c == 0 && m.LargestExclusive
}

// Overlaps reports whether the table may hold keys in [low, high); nil is unbounded.
func (m *TableMeta) Overlaps(low, high []byte) bool {
	return (low == nil || !m.EndsBefore(low)) && (high == nil || bytes.Compare(m.Smallest, high) < 0)
}
