package manifest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestObsolete(t *testing.T) {
	s, err := NewState(testStore).Apply(&Edit{
		Segments: segments(5, 6).Segments, LogStart: 5,
		Added: []Added{{Level: 0, Run: 1, Table: tab(7, "a", "b")}, {Level: 6, Table: tab(8, "a", "b")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Manifest = 9
	names := []string{
		"000004.log", "000005.log", "000006.log", "000007.log", "000007.sst", "000008.sst", "000010.sst",
		"000009.tmp", "CURRENT", "LOCK", "SHM", "RESERVE", "MANIFEST-000009", "MANIFEST-000008", "MANIFEST-9",
		"notes.txt", "4.log", "000004.log.bak", "..", "MANIFEST-000009.old", "000011.val",
	}
	want := []string{"000004.log", "000007.log", "000010.sst", "000009.tmp", "MANIFEST-000008"}
	if got := Obsolete(names, s, nil); !slices.Equal(got, want) {
		t.Errorf("garbage %v, want %v", got, want)
	}
	keep := func(t base.FileType, num uint64) bool { return t == base.FileTable || num == 4 }
	if got := Obsolete(names, s, keep); !slices.Equal(got, []string{"000007.log", "000009.tmp", "MANIFEST-000008"}) {
		t.Errorf("garbage %v", got)
	}
}

func TestFirstFreeNum(t *testing.T) {
	s := NewState(testStore)
	s.NextFileNum = 12
	for _, c := range []struct {
		names []string
		s     *State
		want  uint64
	}{
		{nil, nil, 1}, {nil, s, 12}, {[]string{"000003.log", "x"}, s, 12}, {[]string{"000012.tmp", "000040.sst", "CURRENT"}, s, 41},
		{[]string{"MANIFEST-000003"}, nil, 4}, {[]string{"18446744073709551615.log"}, s, 12},
	} {
		if got := FirstFreeNum(c.names, c.s); got != c.want {
			t.Errorf("%v: %d, want %d", c.names, got, c.want)
		}
	}
}

// TestUnconfirmed: the name of a manifest that a recovery has made is not known to be durable while there is one
// before it; of one that was written to it is.
func TestUnconfirmed(t *testing.T) {
	written, _ := closedStore(t)
	made, last := written.Clone(), mustRecover(t, written)
	const num = 900
	if err := CreateSealed(made, "db", testStore, num, last.Snapshot()); err != nil {
		t.Fatal(err)
	}
	begun := made.Clone()
	l, err := CreateWhen(nil, begun, "db", testStore, num+1, segments(950))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	before, behind := base.FileName(base.FileManifest, 1), base.FileName(base.FileManifest, num+5)
	for _, c := range []struct {
		what   string
		fsys   *memfs.FS
		before string
		want   bool
	}{
		{"made at once", made, before, true}, {"made at once, none before it", made, behind, false},
		{"closed", written, base.FileName(base.FileManifest, 0), false}, {"begun", begun, before, false},
	} {
		s := mustRecover(t, c.fsys)
		if got := Unconfirmed([]string{"CURRENT", c.before, base.FileName(base.FileManifest, s.Manifest), "000001.log"}, s); got != c.want {
			t.Errorf("%s: unconfirmed %v", c.what, got)
		}
	}
}

// TestEarlierNeeds: of the files that the last state does not need, those that any state before it
// names, in this manifest or, where it is there, in one before, stay; those that none has named, though
// their numbers were taken, may go.
func TestEarlierNeeds(t *testing.T) {
	stay, gone := 0, 0
	for seed := range uint64(50) {
		rng, fsys := rand.New(rand.NewPCG(seed, 1)), memfs.New()
		l := newLog(t, fsys, segments(2))
		first, named, before := uint64(3), map[uint64]bool{}, map[uint64]bool{} // by states of this manifest, and of earlier ones
		note := func() {
			for _, m := range l.State().Version.Tables() {
				named[m.Num] = true
			}
		}
		for range 30 {
			mustAppend(t, l, randomEdit(rng, l.State()))
			note()
			if rng.IntN(10) == 0 {
				first = l.State().NextFileNum + 5
				next, err := l.Rotate(first - 1)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				maps.Copy(before, named)
				l, named = next, map[uint64]bool{}
				note()
			}
		}
		s := mustRecover(t, fsys)
		live := base.FileName(base.FileManifest, s.Manifest)
		alone, both := EarlierNeeds([]string{live}, s), EarlierNeeds([]string{live, base.FileName(base.FileManifest, 1)}, s)
		for num := range s.NextFileNum + 20 {
			if levelOf(s.Version, num) >= 0 {
				continue // not asked about
			}
			want := named[num]
			if got := alone(base.FileTable, num); got != want {
				t.Errorf("seed %d: table %d has to stay: %v, want %v", seed, num, got, want)
			}
			if got := both(base.FileTable, num); first > 3 && got != (want || num < first) || !got && before[num] {
				t.Errorf("seed %d: table %d has to stay beside the manifest before: %v", seed, num, got)
			}
			if want {
				stay++
			} else {
				gone++
			}
		}
		for _, needs := range []func(base.FileType, uint64) bool{alone, both} {
			if needs(base.FileTemp, 3) || needs(base.FileReserve, 0) || needs(base.FileManifest, first) || !needs(base.FileLog, s.NextFileNum) || first > 3 && !needs(base.FileManifest, 1) {
				t.Errorf("seed %d: a temporary file, the reserve, or a manifest behind %d has to stay; or one before it, or a log, may go", seed, first-1)
			}
		}
		if a, err := s.Apply(stamped(9000)); err != nil || !EarlierNeeds(nil, a)(base.FileTable, a.NextFileNum+1) {
			t.Errorf("seed %d: a state that is not Recover's says that a table may go (%v)", seed, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if stay < 300 || gone < 500 {
		t.Errorf("%d tables stay, %d go: is anything tested?", stay, gone)
	}
}
