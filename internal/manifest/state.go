package manifest

import (
	"cmp"
	"math"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// State is everything a manifest says. It is immutable: Apply makes a new one.
type State struct {
	Store    base.ID
	Manifest uint64 // number of the manifest file
	Version  *Version

	Segments        []Segment // live log segments in order of number; none after a clean close
	LogStart        uint64    // see Edit
	Provisional     uint64    // see Edit
	NextFileNum     uint64
	LastSeq         uint64
	IngestedThrough uint64
	Dropped         Dropped // zero: nothing to report since the last clean close of what was written to

	// Filled by Recover only.
	Clean bool   // the manifest is sealed: the store was closed, or made, as a whole
	Tail  Tail   // what Recover dropped of the manifest itself
	named uint64 // the greatest number of a log segment whose file's name is known to be durable: see nameSegments

	firstNum uint64          // NextFileNum as of the manifest's snapshot
	gone     map[uint64]bool // tables that later edits of it have removed; nil: not known
	whole    bool            // it was made sealed: there is nothing but the snapshot
	unknown  bool
}

// Tail reports bytes at the end of a manifest that are no whole edits.
type Tail struct {
	Bytes int64 // up to the last byte that is not zero
	From  int64 // offset in the manifest
}

// NoLog is the LogStart of a store that needs no log segment whose number is below next.
func NoLog(next uint64) uint64 { return min(next, MaxSegmentNum+1) }

// NewState returns the state before the first edit of a store.
func NewState(store base.ID) *State {
	return &State{Store: store, Version: new(Version), NextFileNum: 1}
}

// Apply returns the state after an edit. An edit that breaks an invariant is a
// *base.CorruptionError without a file; the receiver is unchanged in any case.
func (s *State) Apply(e *Edit) (*State, error) {
	version, err := s.Version.Apply(e)
	if err != nil {
		return nil, err
	}
	next := *s
	next.Version, next.Clean, next.Tail, next.gone, next.whole = version, false, Tail{}, nil, false
	next.Segments = slices.Clone(s.Segments)
	return &next, next.advance(e)
}

// advance applies all of an edit but its tables, in place.
func (s *State) advance(e *Edit) error {
	for _, seg := range e.Segments {
		if n := len(s.Segments); seg.Num > MaxSegmentNum || seg.Num < s.LogStart || n > 0 && seg.Num <= s.Segments[n-1].Num {
			return badEdit("log segment %d is not behind the others", seg.Num)
		}
		s.Segments = append(s.Segments, seg)
		s.NextFileNum = max(s.NextFileNum, seg.Num+1)
	}
	for _, a := range e.Added {
		s.NextFileNum = max(s.NextFileNum, a.Table.Num+1)
		s.LastSeq = max(s.LastSeq, a.Table.MaxSeq)
	}
	if max(e.LogStart, e.Provisional) > MaxSegmentNum+1 || e.NextFileNum > maxFileNum+1 || max(e.LastSeq, e.IngestedThrough) > base.MaxSeq {
		return badEdit("log start %d, provisional %d, next file %d, sequences %d and %d are no numbers of a store", e.LogStart, e.Provisional, e.NextFileNum, e.LastSeq, e.IngestedThrough)
	}
	s.LogStart = max(s.LogStart, e.LogStart)
	s.Provisional = max(s.Provisional, e.Provisional)
	s.NextFileNum = max(s.NextFileNum, e.NextFileNum)
	if max(s.LogStart, s.Provisional) > s.NextFileNum { // a segment that is still to come could not be recorded, or not as provisional
		return badEdit("the log starts with segment %d, from %d on they are provisional, but the next file has number %d", s.LogStart, s.Provisional, s.NextFileNum)
	}
	s.LastSeq = max(s.LastSeq, e.LastSeq)
	s.IngestedThrough = max(s.IngestedThrough, e.IngestedThrough)
	if s.IngestedThrough > s.LastSeq { // recovery would pass over large transactions that are still to come
		return badEdit("sequences up to %d are ingested, but the last one is %d", s.IngestedThrough, s.LastSeq)
	}
	if e.Dropped != nil && e.Dropped.Bytes > maxCount {
		return badEdit("%d bytes are dropped", e.Dropped.Bytes)
	} else if e.Dropped != nil {
		s.Dropped = *e.Dropped
	}
	for len(s.Segments) > 0 && s.Segments[0].Num < s.LogStart {
		s.Segments = s.Segments[1:]
	}
	s.unknown = s.unknown || e.unknown
	return nil
}

// NoLog reports whether the store was closed, or recovered, as a whole: nothing of a log is needed.
func (s *State) NoLog() bool { return s.Clean && len(s.Segments) == 0 }

// IsProvisional reports whether log segment num was recorded before it was synced, and no edit has
// said since that it is: a power cut may have taken it away, and all of the log behind it.
func (s *State) IsProvisional(num uint64) bool {
	return s.Provisional != 0 && num >= s.Provisional
}

// MayBeMissing reports whether a power cut may have taken away the file of log segment num: it is provisional, and its name is not known to
// be durable. It is for states that Recover returns.
func (s *State) MayBeMissing(num uint64) bool { return s.IsProvisional(num) && num > s.named }

// FirstProvisional returns the number of the first provisional log segment, 0 if there is none.
func (s *State) FirstProvisional() uint64 {
	for _, seg := range s.Segments {
		if s.IsProvisional(seg.Num) {
			return seg.Num
		}
	}
	return 0
}

// Record returns the edit that records a new log segment. One that is synced must come behind
// segments that all are.
func (s *State) Record(seg Segment, provisional bool) *Edit {
	e := &Edit{Segments: []Segment{seg}}
	switch {
	case provisional && s.Provisional == 0:
		e.Provisional = seg.Num
	case !provisional && s.Provisional != 0:
		e.Provisional = seg.Num + 1
	}
	return e
}

// Snapshot returns the edit that makes this state out of an empty one.
func (s *State) Snapshot() *Edit {
	e := &Edit{
		Segments: s.Segments, LogStart: s.LogStart, Provisional: s.Provisional, NextFileNum: s.NextFileNum,
		LastSeq: s.LastSeq, IngestedThrough: s.IngestedThrough,
	}
	if s.Dropped != (Dropped{}) {
		e.Dropped = &s.Dropped
	}
	for _, r := range s.Version.L0 {
		for _, t := range r.Tables {
			e.Added = append(e.Added, Added{Run: r.ID, Table: t})
		}
	}
	for level, tables := range s.Version.Levels {
		for _, t := range tables {
			e.Added = append(e.Added, Added{Level: level, Table: t})
		}
	}
	return e
}

// fold joins the edits of a whole manifest in linear time: only the tables that
// are left at the end are ever sorted into a version.
type fold struct {
	state  State
	tables map[uint64]Added
}

func newFold(store base.ID) *fold {
	f := &fold{state: *NewState(store), tables: make(map[uint64]Added)}
	f.state.gone = make(map[uint64]bool)
	return f
}

func (f *fold) apply(e *Edit) error {
	for _, r := range e.Removed {
		if a, ok := f.tables[r.Num]; !ok || a.Level != r.Level {
			return badEdit("table %d is removed from level %d but is not there", r.Num, r.Level)
		}
		delete(f.tables, r.Num)
		f.state.gone[r.Num] = true
	}
	for _, a := range e.Added {
		if err := a.check(); err != nil {
			return err
		}
		if _, twice := f.tables[a.Table.Num]; twice {
			return badEdit("table %d is added a second time", a.Table.Num)
		}
		f.tables[a.Table.Num] = a
	}
	if err := f.state.advance(e); err != nil {
		return err
	}
	if f.state.firstNum == 0 {
		f.state.firstNum = f.state.NextFileNum
		f.nameSegments(math.MaxUint64)
	}
	newest := uint64(0)
	for _, a := range e.Added {
		newest = max(newest, a.Table.Num)
	}
	f.nameSegments(newest)
	return nil
}

// nameSegments notes that the names of log segments below a number are durable. Those of the snapshot are synced before CURRENT
// names the manifest. And the file of a segment is there when it gets its number, so that the sync of the directory behind which an edit
// adds a table with a greater one takes it along.
func (f *fold) nameSegments(below uint64) {
	segments := f.state.Segments
	i, _ := slices.BinarySearchFunc(segments, below, func(s Segment, num uint64) int { return cmp.Compare(s.Num, num) })
	if i > 0 {
		f.state.named = max(f.state.named, segments[i-1].Num)
	}
}

// finish returns the state after the edits folded so far. Its tables do not share
// memory with the bytes the edits were decoded from.
func (f *fold) finish() (*State, error) {
	for _, a := range f.tables {
		t := a.Table
		keys := append(append(make([]byte, 0, len(t.Smallest)+len(t.Largest)), t.Smallest...), t.Largest...)
		n := len(t.Smallest)
		t.Smallest, t.Largest = keys[:n:n], keys[n:]
	}
	var err error
	f.state.Version, err = newVersion(f.tables)
	return &f.state, err
}
