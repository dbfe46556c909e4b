package tree

import "cmp"

// MinSegment is the size in bytes of a store's first log segment.
const MinSegment = 256 << 10

const (
	// quickSegment: each segment is twice as large as the one before, smaller ones four
	// times, since they would be full before the next one is made.
	quickSegment = 4 << 20

	// A commit that needs a segment of its own size gets one for fewCommits like it, if
	// that takes no more than fewBytes: to make a segment takes as long as to write a
	// megabyte.
	fewCommits = 4
	fewBytes   = 8 << 20

	// recordGuess is the size of records nobody has seen yet.
	recordGuess = 96
)

// Shape decides how large the next log segment and its memtable are. It learns from those
// before. The zero value is that of a store just opened.
type Shape struct {
	bytes  int // of the next segment
	record int // bytes of segment per record, as the last one had
}

// Next returns the size in bytes of the next segment, whose first commit takes need
// bytes and has count entries, and how many records its memtable has room for. Beyond
// limit it grows only for that commit.
func (s *Shape) Next(need, count, limit int) (size, records int) {
	size = min(max(s.bytes, MinSegment, min(fewCommits*need, fewBytes)), limit)
	size = (max(size, need) + 4095) &^ 4095
	record := cmp.Or(s.record, recordGuess)
	if count > 0 && need > size/2 {
		record = need / count
	}
	return size, max(size/max(record*3/4, 16), count) + 64
}

// Rest learns from the memtable of a store that comes to rest: the next burst of writes
// may be as large.
func (s *Shape) Rest(m *Memory, limit int) {
	tail, _ := m.Seg.Tail()
	s.bytes = min(max(2*int(tail.Offset()), MinSegment), limit)
	s.record = max(16, int(tail.Offset())/m.Len())
}

// Note learns from the memtable that is sealed, nil if there is none yet.
func (s *Shape) Note(m *Memory, limit int) {
	if m != nil && m.Len() == 0 {
		return // it held the record of a large transaction only
	}
	if s.bytes < quickSegment {
		s.bytes *= 2
	}
	s.bytes = min(max(2*s.bytes, MinSegment), limit)
	if m == nil {
		return
	}
	tail, _ := m.Seg.Tail()
	s.record = max(16, int(tail.Offset())/m.Len())
}
