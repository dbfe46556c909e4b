package wal

import "fmt"

// Position is a place in the log: segment number in the upper, byte offset in
// the lower half. Positions are ordered like the log itself. Zero is before
// everything.
type Position uint64

// At returns the position of an offset in a segment.
func At(segment uint64, off int64) Position { return Position(segment<<32 | uint64(off)) }

// Segment returns the number of the segment p is in.
func (p Position) Segment() uint64 { return uint64(p) >> 32 }

// Offset returns the byte offset of p in its segment.
func (p Position) Offset() int64 { return int64(p & 0xFFFFFFFF) }

func (p Position) String() string {
	return fmt.Sprintf("segment %d offset %d", p.Segment(), p.Offset())
}
