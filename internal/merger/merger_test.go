package merger

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/internal/view"
)

// withSnapshots returns a Merger of a store with snapshots of some sequences, begun one after another, at which one may be
// seen.
func withSnapshots(t testing.TB, visible uint64, snapshots ...uint64) *Merger {
	v := new(view.View)
	v.Init(100, func(int64) {})
	var open []*view.Reader
	for _, seq := range snapshots {
		v.Show(seq)
		r, _, _, err := v.BeginSnapshot()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, r)
	}
	v.Show(visible)
	t.Cleanup(func() {
		for _, r := range open { // which would have gone, if they were forgotten
			v.EndSnapshot(r)
			v.Done(r)
		}
	})
	return &Merger{View: v}
}

// TestReaders: each sequence is there once, in order, the one that may be seen among those that are read at only, unless a
// snapshot has it.
func TestReaders(t *testing.T) {
	for _, test := range []struct {
		visible                uint64
		begun, snapshots, read tombstone.Stripes
	}{
		{7, nil, nil, tombstone.Stripes{7}},
		{7, tombstone.Stripes{7}, tombstone.Stripes{7}, tombstone.Stripes{7}},
		{7, tombstone.Stripes{0, 3, 3, 5}, tombstone.Stripes{0, 3, 5}, tombstone.Stripes{0, 3, 5, 7}},
		{7, tombstone.Stripes{3, 7, 7}, tombstone.Stripes{3, 7}, tombstone.Stripes{3, 7}},
		{7, tombstone.Stripes{3, 7, 9}, tombstone.Stripes{3, 7, 9}, tombstone.Stripes{3, 7, 9}}, // 9 began since
		{7, tombstone.Stripes{9, 3, 8}, tombstone.Stripes{3, 8, 9}, tombstone.Stripes{3, 7, 8, 9}},
	} {
		snapshots, read := withSnapshots(t, test.visible, test.begun...).readers()
		if !slices.Equal(snapshots, test.snapshots) || !slices.Equal(read, test.read) {
			t.Errorf("snapshots %v, and %d may be seen: %v and %v", test.begun, test.visible, snapshots, read)
		}
	}
}

// TestReadersAreGatheredOnce: of a thousand snapshots there is one slice.
func TestReadersAreGatheredOnce(t *testing.T) {
	m := withSnapshots(t, 1000, ascending(1000)...)
	if n := testing.AllocsPerRun(10, func() { m.readers() }); n > 1 {
		t.Errorf("allocated %.0f times", n)
	}
}

func ascending(n int) (seqs []uint64) {
	for i := range n {
		seqs = append(seqs, uint64(i))
	}
	return seqs
}

// BenchmarkReaders is what each look at the debt of a store takes for its open snapshots.
func BenchmarkReaders(b *testing.B) {
	for _, n := range []int{1, 8000, 100_000} {
		b.Run(fmt.Sprint("snapshots=", n), func(b *testing.B) {
			m := withSnapshots(b, uint64(n), ascending(n)...)
			b.ReportAllocs()
			for b.Loop() {
				m.readers()
			}
		})
	}
}
