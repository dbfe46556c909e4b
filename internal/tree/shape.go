package tree

import (
	"cmp"

	"github.com/cairndb/cairn/internal/wal"
)

// MinSegment is the size in bytes of a store's first log segment; RelaxedSegment where no
// commit waits for a sync: the smaller one would be full before the next one is made.
// (256 KiB were too little where 32 goroutines wait for syncs, too.)
const (
	MinSegment     = 512 << 10
	RelaxedSegment = 1 << 20
)

// LeastSegment is the size of a segment of a store that holds little, where the disk has no space for more.
const LeastSegment = MinSegment / 4

// LittleBytes of log are worth neither a table nor space put aside for one.
const LittleBytes = 256 << 10

const (
	// quickSegment: after the first two, which are alike, each segment is twice as large as
	// the one before, smaller ones four times, since they would be full before the next one
	// is made.
	quickSegment = 2 << 20

	// To make a segment takes as long as to write a megabyte: a commit gets one that holds
	// manyCommits like it if that takes no more than manyBytes, but at least fewCommits if
	// that takes no more than fewBytes.
	manyCommits = 64
	manyBytes   = 1 << 20
	fewCommits  = 4
	fewBytes    = 8 << 20

	// recordGuess is the size of records nobody has seen yet. There is room for so many of them that
	// all may be an eighth smaller, and for fewRecords at least: a segment of large ones may go on with
	// small ones.
	recordGuess = 84
	fewRecords  = 512
)

// Shape decides how large the next log segment and its memtable are. It learns from those
// before. The zero value is that of a store just opened whose commits are durable.
type Shape struct {
	Relaxed bool // few commits wait for a sync: less than half of those to the segment before

	bytes  int  // of the next segment
	record int  // bytes of segment per record, as the last one had
	long   bool // so were most commits to the last one

	// Of the commits to the active segment:
	commit  int // bytes that the largest takes
	commits int // bytes of all
	count   int
	entries int
	waiting int // how many wait for a sync, less those that do not
}

// least is the size of the first segment.
func (s *Shape) least() int {
	if s.Relaxed {
		return RelaxedSegment
	}
	return MinSegment
}

// Saw learns from a commit of count entries to the active segment, of which it takes n bytes,
// and which waits for a sync if it is durable.
func (s *Shape) Saw(n, count int, durable bool) {
	if s.waiting--; durable {
		s.waiting += 2
	}
	s.commit = max(s.commit, n+wal.OverheadBytes)
	s.commits += n
	s.count++
	s.entries += count
}

// MostRelaxed reports whether few commits wait for a sync, as far as those to the active segment
// tell.
func (s *Shape) MostRelaxed() bool {
	if s.waiting == 0 {
		return s.Relaxed
	}
	return s.waiting < 0
}

// LongCommit bytes are what commits take on average for which a segment's file is its arena even if they are synced: to
// copy them to memory that was not touched takes as long as to write them. Only tests that want short ones to do
// so change it, before they open a store.
var LongCommit = 384 << 10

// MostLong reports whether the next segment, whose first commit takes need bytes, is to hold commits of LongCommit
// bytes: as that does, or if none is known those to the active one on average, or to the one before.
func (s *Shape) MostLong(need int) bool {
	switch {
	case need > 0:
		return need >= LongCommit
	case s.count > 0:
		return s.commits >= LongCommit*s.count
	}
	return s.long
}

// Next returns the size in bytes of the next segment, whose first commit takes need
// bytes and has count entries, and how many records its memtable has room for. Beyond
// limit it grows only for that commit.
func (s *Shape) Next(need, count, limit int) (size, records int) {
	commit := max(need, s.commit)
	size = max(s.bytes, s.least(), min(manyCommits*commit, manyBytes), min(fewCommits*commit, fewBytes))
	size = (max(min(size, limit), need) + 4095) &^ 4095
	record := cmp.Or(s.record, s.commits/max(s.entries, 1), recordGuess)
	if count > 0 && fewCommits*need >= size {
		record = need / count
	}
	return size, max(size/max(record*7/8, 16), count) + fewRecords
}

// Rest learns from the memtable of a store that comes to rest: the next burst of writes
// may be as large.
func (s *Shape) Rest(m *Memory, limit int) {
	if m.Len() == 0 {
		return // the one before is what there is to learn from
	}
	s.bytes = min(max(2*s.learn(m, limit), s.least()), limit)
}

// Note learns from the memtable that is sealed, nil if there is none, when the next one
// takes its place: from now on Next is about the one behind that.
func (s *Shape) Note(m *Memory, limit int) {
	if m != nil {
		if m.Len() == 0 {
			return // it held the record of a large transaction only
		}
		s.learn(m, limit)
		if 2*m.Used() < m.Seg.Capacity() {
			return // somebody has had it sealed: it was large enough
		}
	}
	if s.bytes < quickSegment {
		s.bytes *= 2
	}
	s.bytes = min(max(2*s.bytes, s.least()), limit)
}

// learn learns from a memtable to which nothing is added any more, and returns how many
// bytes of its segment are used, without a commit that takes more than limit: for the next one like it
// there will be a segment as large as it.
func (s *Shape) learn(m *Memory, limit int) int {
	used := int(m.Seg.Appended())
	s.record = max(16, used/m.Len())
	if s.commit > limit {
		used -= s.commit
	}
	s.Relaxed = s.MostRelaxed()
	s.long = s.MostLong(0)
	s.commit, s.commits, s.count, s.entries, s.waiting = 0, 0, 0, 0, 0
	return used
}

// NextDue reports whether the segment behind one of the given capacity, of which so many
// bytes are used, should be made: if a half of them are, or three quarters of a first one whose commits wait for syncs.
// The rest takes longer to fill than a segment to make, and a store of a few writes makes no other.
func (s *Shape) NextDue(used, capacity int) bool {
	due := capacity / 2
	if capacity <= MinSegment && !s.Relaxed {
		due = capacity * 3 / 4
	}
	return used >= due
}
