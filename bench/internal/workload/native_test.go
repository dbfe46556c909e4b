package workload

import "testing"

func TestAllocationsOfNativeEnginesAreNotFigures(t *testing.T) {
	r := NewRecorder("")
	r.PerOp("put", Span{Time: 10, Bytes: 20, Allocs: 30}, 1)
	r.Set("size_B", 7) // of no operation
	r.None("no sync", "delete")
	r.Set("delete_allocs", 1)
	r.Uncounted("in C")
	if len(r.Metrics) != 2 || r.Metrics["put"] != 10 || r.Metrics["size_B"] != 7 {
		t.Errorf("left are %v", r.Metrics)
	}
	for _, key := range []string{"put_B", "put_allocs", "delete_allocs"} {
		if r.NA[key] != "in C" {
			t.Errorf("%s: %q", key, r.NA[key])
		}
	}
}
