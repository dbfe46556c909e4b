package manifest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

// history is a workload with, for each state it went through, the number of
// mutations after which the state was acknowledged.
type history struct {
	fsys   *memfs.FS
	states []*State
	acked  []int // states[i] was acknowledged after acked[i] mutations
}

func (h *history) ack(s *State) {
	h.states = append(h.states, s)
	h.acked = append(h.acked, h.fsys.Journal().Len())
}

func newHistory(t *testing.T) *history {
	h := &history{fsys: memfs.New()}
	if err := h.fsys.MkdirAll("db"); err != nil {
		t.Fatal(err)
	}
	h.fsys.StartJournal()
	return h
}

// judge enumerates what a power cut may leave: the state recovered is always one
// that was reached, and none that comes before one acknowledged. check, if not nil,
// looks at each of them.
func (h *history) judge(t *testing.T, check func(at int, disk *memfs.FS, s *State)) {
	t.Helper()
	index := map[string]int{}
	for i, s := range h.states {
		index[content(s)] = i
	}
	journal, seen, crashes := h.fsys.Journal(), map[uint64]bool{}, 0
	for at := 0; at <= journal.Len(); at++ {
		acked := -1
		for i, n := range h.acked {
			if n <= at {
				acked = i
			}
		}
		clear(seen)
		for choice := range journal.Choices(at, memfs.Plan{EveryByte: 4096, Random: 20, Seed: uint64(at)}) {
			disk := journal.State(at, choice)
			if seen[disk.Hash()] {
				continue
			}
			seen[disk.Hash()] = true
			crashes++
			s, err := Recover(disk, "db", false)
			if acked < 0 && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				t.Fatalf("after %d mutations, %v: %v", at, choice, err)
			}
			got, ok := index[content(s)]
			if !ok || got < acked {
				t.Fatalf("after %d mutations, %v: state %d (%t), acknowledged %d\n%+v", at, choice, got, ok, acked, s)
			}
			if check != nil {
				check(at, disk, s)
			}
		}
	}
	t.Logf("%d mutations, %d crash states", journal.Len(), crashes)
}

// workload goes through everything a manifest can live through.
func (h *history) workload(t *testing.T) {
	l, err := CreateWhen(nil, h.fsys, "db", testStore, 1, segments(2))
	if err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	step := func(e *Edit) {
		t.Helper()
		mustAppend(t, l, e)
		h.ack(l.State())
	}
	step(stamped(1))
	step(segments(200))
	if err := l.Mark(); err != nil {
		t.Fatal(err)
	}
	l.parts = 40
	step(stamped(2))
	step(&Edit{LogStart: 200, Removed: []Removed{{0, 101}}})
	next, err := l.Rotate(300)
	if err != nil {
		t.Fatal(err)
	}
	l = next
	h.ack(l.State())
	if err := h.fsys.Remove("db/MANIFEST-000001"); err != nil {
		t.Fatal(err)
	}
	step(stamped(3))
	final := &Edit{LogStart: 201, LastSeq: 9999}
	if err := l.Seal(final); err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	l, err = CreateWhen(nil, h.fsys, "db", testStore, 400, mustApply(t, l.State(), segments(401)).Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	h.fsys.Remove("db/MANIFEST-000300")
}

func mustApply(t *testing.T, s *State, e *Edit) *State {
	t.Helper()
	next, err := s.Apply(e)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestCrashEverywhere(t *testing.T) {
	h := newHistory(t)
	h.workload(t)
	h.judge(t, nil)
}

// A recovery that crashes itself: from every state a power cut leaves, a new
// manifest is begun, and power is cut again.
func TestCrashInRecovery(t *testing.T) {
	h := newHistory(t)
	h.workload(t)
	rounds, crashes := 0, 0
	h.judge(t, func(at int, disk *memfs.FS, s *State) {
		if rounds++; rounds%40 != 0 {
			return
		}
		names, _ := disk.List("db")
		num := FirstFreeNum(names, s)
		next := mustApply(t, s, segments(num+1))
		journal := disk.StartJournal()
		l, err := CreateWhen(nil, disk, "db", s.Store, num, next.Snapshot())
		if err != nil {
			t.Fatalf("after %d mutations, in\n%v: %v", at, names, err)
		}
		for again := 0; again <= journal.Len(); again++ {
			for choice := range journal.Choices(again, memfs.Plan{Random: 5}) {
				crashes++
				got, err := Recover(journal.State(again, choice), "db", false)
				if err != nil {
					t.Fatalf("after %d and %d mutations, %v: %v", at, again, choice, err)
				}
				if content(got) != content(s) && content(got) != content(l.State()) || again == journal.Len() && got.Manifest != num {
					t.Fatalf("after %d and %d mutations, %v: %+v", at, again, choice, got)
				}
			}
		}
	})
	t.Logf("%d crashes in %d recoveries", crashes, rounds/40)
}

// Where the file system cannot reserve, zeros are written first: an edit torn over
// them is still all or nothing.
func TestCrashWithoutPreallocation(t *testing.T) {
	h := newHistory(t)
	l, err := CreateWhen(nil, noReserve{h.fsys}, "db", testStore, 1, segments(2))
	if err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	for i := range 3 {
		mustAppend(t, l, stamped(i))
		h.ack(l.State())
	}
	if err := l.Seal(&Edit{LogStart: 3}); err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	h.judge(t, nil)
}

// An edit whose sync failed may or may not be there after a power cut; what was
// acknowledged before is, and the manifest is not corrupt.
func TestCrashAfterFailedSync(t *testing.T) {
	h := newHistory(t)
	l, err := CreateWhen(nil, h.fsys, "db", testStore, 1, segments(2))
	if err != nil {
		t.Fatal(err)
	}
	h.ack(l.State())
	mustAppend(t, l, stamped(1))
	h.ack(l.State())
	h.fsys.FailSyncs(func(string) error { return errors.New("disk on fire") })
	if _, err := l.Append(stamped(2)); !errors.Is(err, base.ErrPoisoned) {
		t.Fatal(err)
	}
	h.states = append(h.states, mustApply(t, l.State(), stamped(2)))
	h.acked = append(h.acked, 1<<30)
	h.judge(t, nil)
}
