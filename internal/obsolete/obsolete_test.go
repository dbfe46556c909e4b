package obsolete

import (
	"slices"
	"sync/atomic"
	"testing"
)

func TestFiles(t *testing.T) {
	var o Files
	var closed atomic.Bool
	o.Add(File{Path: "any"})
	o.Add(File{Path: "second", Edit: 2})
	o.Add(File{Path: "read", Edit: 1, Closed: &closed, Size: 7})
	want := func(sealed uint64, waiting bool, paths ...string) {
		t.Helper()
		if o.Waiting(sealed) != waiting {
			t.Errorf("sealed %d: waiting %v", sealed, !waiting)
		}
		var got []string
		for _, f := range o.Take(sealed) {
			got = append(got, f.Path)
		}
		if !slices.Equal(got, paths) {
			t.Errorf("sealed %d: %v, want %v", sealed, got, paths)
		}
		if n := o.TableBytes(); (n == 7) != !closed.Load() || n != 0 && n != 7 {
			t.Errorf("sealed %d: %d bytes of tables are left", sealed, n)
		}
	}
	want(1, true, "any")
	want(1, true)
	want(2, false, "second")
	closed.Store(true)
	want(2, false, "read")
	want(9, false)
}
