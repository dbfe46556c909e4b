package manifest

import (
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

// TestEarlierMayNeed: of the files that the last state does not need, those that any state before it
// names, in this manifest or one before, stay; those that none has named, though their numbers were
// taken, may go.
func TestEarlierMayNeed(t *testing.T) {
	stay, gone := 0, 0
	for seed := range uint64(50) {
		rng, fsys := rand.New(rand.NewPCG(seed, 1)), memfs.New()
		l := newLog(t, fsys, segments(2))
		first, named := uint64(3), map[uint64]bool{} // by any state
		for range 30 {
			mustAppend(t, l, randomEdit(rng, l.State()))
			for _, m := range l.State().Version.Tables() {
				named[m.Num] = true
			}
			if rng.IntN(10) == 0 {
				first = l.State().NextFileNum + 5
				next, err := l.Rotate(first - 1)
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = next
			}
		}
		s := mustRecover(t, fsys)
		for num := range s.NextFileNum + 20 {
			switch may := s.EarlierMayNeed(base.FileTable, num); {
			case levelOf(s.Version, num) >= 0: // not asked about
			case named[num] && !may:
				t.Errorf("seed %d: table %d may go, but a state before named it", seed, num)
			case !named[num] && num >= first && may:
				t.Errorf("seed %d: table %d has to stay, but no state has named it", seed, num)
			case may:
				stay++
			default:
				gone++
			}
		}
		if s.EarlierMayNeed(base.FileTemp, 3) || s.EarlierMayNeed(base.FileReserve, 0) || s.EarlierMayNeed(base.FileManifest, first) || !s.EarlierMayNeed(base.FileLog, s.NextFileNum) {
			t.Errorf("seed %d: a temporary file, the reserve, or a manifest behind %d, has to stay; or a log may go", seed, first-1)
		}
		if first > 3 && !s.EarlierMayNeed(base.FileManifest, 1) {
			t.Errorf("seed %d: manifest 1 may go, before %d", seed, first-1)
		}
		if a, err := s.Apply(stamped(9000)); err != nil || !a.EarlierMayNeed(base.FileTable, a.NextFileNum+1) {
			t.Errorf("seed %d: a state that is not Recover's says that a table may go (%v)", seed, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if stay < 500 || gone < 500 {
		t.Errorf("%d tables stay, %d go: is anything tested?", stay, gone)
	}
}
