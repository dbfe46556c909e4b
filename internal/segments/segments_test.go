package segments

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/durability"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/logfiles"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

const (
	size   = 64 << 10
	memory = 16 << 20
)

var (
	synced  = Plan{Size: size, Records: 100}
	relaxed = Plan{Size: size, Records: 100, Relaxed: true}
	long    = Plan{Size: size, Records: 100, Long: true}
)

type store struct {
	Maker
	t        *testing.T
	disk     *memfs.FS
	faults   *faultfs.FS
	commits  sync.Mutex
	hurry    bool
	poisoned error
}

// newStore is a store that has no segment yet, on a disk whose files can be mapped.
func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, disk: memfs.New(), hurry: true}
	s.disk.AllowMaps()
	s.faults = faultfs.New(s.disk)
	s.ok(errors.Join(s.disk.MkdirAll("/db"), s.disk.SyncDir("/")))
	poison := func(err error) { s.poisoned = errors.Join(s.poisoned, err) }
	gone := new(obsolete.Files)
	s.Ledger = &ledger.Ledger{FS: s.faults, Dir: "/db", Obsolete: gone, Poison: poison, Edited: func() {}}
	s.Ledger.Start(manifest.NewState(base.NewID()), 1)
	s.Memory, s.Budget, s.Epochs = memory, arena.NewBudget(memory), epoch.New()
	s.Buffers, s.Pages = tree.NewBuffers(s.Budget), cache.New(s.Budget, s.Epochs)
	s.Tables = &tablefiles.Files{FS: s.faults, Dir: "/db", Pages: s.Pages, Budget: s.Budget}
	s.Logs = &logfiles.Files{FS: s.faults, Dir: "/db", Store: s.Ledger.Store, Obsolete: gone, NewNum: s.Ledger.NewNum, GiveBack: s.Ledger.GiveBack}
	s.Log = &durability.Log{Commits: &s.commits, Ledger: s.Ledger, Poison: poison}
	s.Hurry = func() bool { return s.hurry }
	t.Cleanup(func() {
		s.Tables.DropAhead()
		s.Log.Close()
		s.Ledger.Close()
		s.Buffers.AwaitUnmapped()
		s.Buffers.Close()
		s.Pages.Close()
	})
	return s
}

func (s *store) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// use makes a segment the one that is written to, and commits once.
func (s *store) use(p Plan) *tree.Memory {
	s.t.Helper()
	m, err := s.Make(p)
	s.ok(err)
	s.commits.Lock()
	defer s.commits.Unlock()
	end, sum := wal.Position(0), uint32(0)
	if all := s.Log.Segments(nil); len(all) > 0 {
		end, sum = all[len(all)-1].Tail()
	}
	m.Seg.Link(end, s.Log.End(), sum)
	m.Seg.Append(frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1}, frame.AppendEntry(nil, base.KindPut, []byte("k"), []byte("v")))
	s.ok(m.Seg.WriteOut())
	s.Log.Add(m.Seg)
	return m
}

// inUse returns how many bytes memtables have.
func (s *store) inUse() int64 {
	s.Buffers.AwaitUnmapped()
	return s.Budget.UsedBy(arena.ClassMemtable) - s.Buffers.Spare()
}

// onDisk returns what a manifest on a disk says, and fails unless the segments that it names are there, if they have to be.
func (s *store) onDisk(what string, disk *memfs.FS) *manifest.State {
	s.t.Helper()
	state, err := manifest.Recover(disk, "/db", false)
	s.ok(err)
	for _, seg := range state.Segments {
		f, err := disk.Open(s.Logs.Path(seg.Num))
		if err == nil {
			rec := wal.Recorded{Num: seg.Num, File: seg.File}
			_, err = wal.Load(f, s.Logs.Path(seg.Num), rec, s.Ledger.Store, make([]byte, size))
			f.Close()
		}
		if err != nil && !state.IsProvisional(seg.Num) {
			s.t.Errorf("%s: segment %d: %v", what, seg.Num, err)
		}
	}
	return state
}

// TestMake: a segment is known before it is used, and durable, with those before it, unless it is provisional.
func TestMake(t *testing.T) {
	for _, before := range []*Plan{nil, &synced, &relaxed} {
		for _, p := range []Plan{synced, relaxed, long} {
			for _, hurry := range []bool{false, true} {
				what := fmt.Sprintf("%+v behind %+v, hurry %v", p, before, hurry)
				s := newStore(t)
				s.hurry = hurry
				if before != nil {
					s.use(*before)
				}
				used := s.inUse()
				m, err := s.Make(p)
				s.ok(err)
				if n := m.Seg.Num; m.Seg.Capacity() != size || m.Records() != 100 || !slices.ContainsFunc(s.Ledger.State().Segments, func(seg manifest.Segment) bool { return seg.Num == n }) {
					t.Errorf("%s: segment %d of %d bytes, %d records; recorded %v", what, n, m.Seg.Capacity(), m.Records(), s.Ledger.State().Segments)
				}
				if got, want := m.Seg.Provisional(), p.Relaxed && arena.CanDetach; got != want || s.Ledger.State().IsProvisional(m.Seg.Num) != want {
					t.Errorf("%s: provisional %v", what, got)
				}
				state := s.onDisk(what, s.disk.Crash(memfs.SyncedOnly()))
				if n := len(state.Segments); !m.Seg.Provisional() && (n == 0 || state.Segments[n-1].Num != m.Seg.Num || state.IsProvisional(m.Seg.Num)) {
					t.Errorf("%s: a power cut leaves segments %v, provisional from %d", what, state.Segments, state.Provisional)
				}
				if n, _ := s.Logs.Live(); n != len(s.Ledger.State().Segments) {
					t.Errorf("%s: %d segments are there, recorded %v", what, n, s.Ledger.State().Segments)
				}
				m.Seg.Close()
				if m.Unref(); s.inUse() != used {
					t.Errorf("%s: %d bytes in use, %d when it is given back", what, used, s.inUse())
				}
			}
		}
	}
}

// TestFailures: whatever fails, no memory and no open file is left, and of the segment nothing that no manifest names.
// The next one can be made, unless nobody knows what is on the disk.
func TestFailures(t *testing.T) {
	for _, p := range []Plan{synced, relaxed, long} {
		for _, before := range []Plan{synced, relaxed} {
			for _, err := range []error{syscall.EIO, vfs.ErrNoSpace, vfs.ErrNotAttempted} {
				for at, fired := int64(1), true; fired; at++ {
					s := newStore(t)
					s.hurry = at%2 == 0 && p != relaxed
					s.use(before)
					fired = s.fails(fmt.Sprintf("%+v behind %+v, operation %d: %v", p, before, at, err), p, at, err)
				}
			}
		}
	}
}

// fails makes a segment where one operation fails, if there are so many, and looks at what is left of it.
func (s *store) fails(what string, p Plan, at int64, with error) (fired bool) {
	s.t.Helper()
	used := s.inUse()
	rule := s.faults.Add(faultfs.Rule{Kinds: faultfs.Mutations | faultfs.Open, At: at, Do: faultfs.Fail(with)})
	s.faults.StartTrace()
	m, err := s.Make(p)
	rule.Stop()
	if err == nil {
		s.Log.SyncUnused(m.Seg)
		m.Seg.Close()
		m.Unref()
	}
	open := map[string]int{}
	for _, e := range s.faults.Trace(faultfs.Create, faultfs.Close) {
		if kind, _ := base.ParseFileName(e.Name[len("/db/"):]); kind == base.FileLog && e.Kind == faultfs.Create && e.Err == nil {
			open[e.Name]++
		} else if kind == base.FileLog && e.Kind == faultfs.Close {
			delete(open, e.Name)
		}
	}
	if s.inUse() != used || len(open) > 0 {
		s.t.Errorf("%s: %v: %d bytes in use, %d before; %v open", what, err, s.inUse(), used, open)
	}
	if errors.Is(err, base.ErrPoisoned) != (s.poisoned != nil) {
		s.t.Errorf("%s: %v, and poisoned by %v", what, err, s.poisoned)
	}
	for _, keep := range []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()} {
		s.onDisk(what, s.disk.Crash(keep))
	}
	if s.poisoned != nil {
		return true
	}
	names, _ := s.disk.List("/db")
	for _, name := range names {
		kind, num := base.ParseFileName(name)
		if kind == base.FileLog && !slices.ContainsFunc(s.Ledger.State().Segments, func(seg manifest.Segment) bool { return seg.Num == num }) {
			s.t.Errorf("%s: %v: %s is left", what, err, name)
		}
	}
	s.use(synced).Unref() // those before it are confirmed
	s.onDisk(what+", and the next one", s.disk.Crash(memfs.SyncedOnly()))
	return rule.Fired() > 0
}

// TestNumberTwice: where there is no space for the first manifest the number of the segment that was made is given out again, where there
// is none in a manifest that is there it is not: whatever a power cut leaves, no file of that segment is met where a manifest names
// another one.
func TestNumberTwice(t *testing.T) {
	for _, live := range []bool{false, true} {
		for _, first := range []Plan{synced, relaxed} {
			for _, next := range []Plan{synced, relaxed} {
				what := fmt.Sprintf("live %v, %+v, then %+v", live, first, next)
				s := newStore(t)
				s.reopen()
				if live {
					s.use(synced)
				} else {
					s.refused(what, first, faultfs.Create) // the table made ahead takes a number
				}
				num := s.Ledger.Next()
				s.refused(what, first, faultfs.Create|faultfs.Preallocate)
				from := s.disk.Journal().Len()
				if got := s.use(next).Seg.Num; (got == num) == live {
					t.Errorf("%s: segment %d, the one before was %d", what, got, num)
				}
				s.judge(what, from)
			}
		}
	}
}

// reopen makes it a store that was closed and is open again.
func (s *store) reopen() {
	s.t.Helper()
	s.ok(manifest.CreateSealed(s.disk, "/db", s.Ledger.Store, 1, new(manifest.Edit)))
	opened, err := manifest.Recover(s.disk, "/db", false)
	s.ok(err)
	s.Ledger.Start(opened, opened.NextFileNum)
}

// refused makes a segment for which there is no space in the manifest, or for that.
func (s *store) refused(what string, p Plan, kinds faultfs.Kind) {
	s.t.Helper()
	defer s.faults.Add(faultfs.Rule{Kinds: kinds, Name: "MANIFEST-*", Sticky: true, Do: faultfs.NoSpace()}).Stop()
	num := s.Ledger.Next()
	for full := !s.Ledger.Live(); !full; {
		s.Ledger.Lock()
		_, err := s.Ledger.Append(&manifest.Edit{})
		s.Ledger.Unlock()
		full = vfs.IsNoSpace(err)
	}
	if _, err := s.Make(p); !errors.Is(err, base.ErrNoSpace) || s.poisoned != nil || s.Ledger.Next() < num {
		s.t.Fatalf("%s: %v, poisoned by %v; next number %d, was %d", what, err, s.poisoned, s.Ledger.Next(), num)
	}
}

// judge fails unless the segments that a manifest names are there, or missing where they may be, whatever a power cut leaves after so many
// mutations.
func (s *store) judge(what string, from int) {
	s.t.Helper()
	journal := s.disk.Journal()
	for at := from; at <= journal.Len(); at++ {
		choices := []memfs.Choice{memfs.SyncedOnly(), memfs.SyncedOnly().EntriesKept(), memfs.Everything(), memfs.Everything().EntriesLost()}
		for i := range journal.Pending(at) {
			choices = append(choices, memfs.DropOne(i), memfs.KeepOne(i))
		}
		for _, choice := range choices {
			disk := journal.State(at, choice)
			state, err := manifest.Recover(disk, "/db", false)
			s.ok(err)
			for _, seg := range state.Segments {
				name := s.Logs.Path(seg.Num)
				f, err := disk.Open(name)
				if err == nil {
					n, _ := f.Size()
					_, err = wal.Load(f, name, wal.Recorded{Num: seg.Num, File: seg.File, Provisional: state.IsProvisional(seg.Num)}, s.Ledger.Store, make([]byte, n))
					f.Close()
				}
				if err != nil && !(errors.Is(err, fs.ErrNotExist) && state.MayBeMissing(seg.Num)) {
					s.t.Fatalf("%s: after %d mutations, %v: segment %d: %v", what, at, choice, seg.Num, err)
				}
			}
		}
	}
}

// TestTableAhead: whatever syncs the directory makes the name of the next table durable, too.
func TestTableAhead(t *testing.T) {
	s := newStore(t)
	for i, p := range []Plan{relaxed, relaxed, synced} {
		s.use(p)
		names, err := s.disk.Crash(memfs.SyncedOnly()).List("/db")
		s.ok(err)
		tables := slices.DeleteFunc(names, func(name string) bool {
			kind, _ := base.ParseFileName(name)
			return kind != base.FileTable
		})
		if len(tables) != 1 {
			t.Errorf("segment %d: tables %v are durable", i, tables)
		}
	}
}

// TestMemory: buffers that do not fit give way where memtables would take more than half of the memory, and only there.
func TestMemory(t *testing.T) {
	for _, spare := range []int{memory / 4, memory / 2} {
		s := newStore(t)
		b, err := s.Buffers.Get(spare)
		s.ok(err)
		s.ok(s.Buffers.Put(b))
		s.use(synced).Unref()
		if kept := s.Buffers.Spare() >= int64(spare); kept != (spare < memory/2) || s.Budget.UsedBy(arena.ClassMemtable) > memory/2 {
			t.Errorf("%d bytes that do not fit are kept: %v; memtables have %d", spare, kept, s.Budget.UsedBy(arena.ClassMemtable))
		}
	}
}
