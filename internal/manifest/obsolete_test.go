package manifest

import (
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
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
