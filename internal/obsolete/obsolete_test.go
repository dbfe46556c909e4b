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
	o.Add(File{Path: "read", Edit: 1, Closed: &closed})
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
	}
	want(1, true, "any")
	want(1, true)
	want(2, false, "second")
	closed.Store(true)
	want(2, false, "read")
	want(9, false)
}
