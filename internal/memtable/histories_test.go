package memtable

import "testing"

// TestHistories: once a key's history is known, each version is found without a walk; another key with the same hash has
// none.
func TestHistories(t *testing.T) {
	const n = 1000
	prev := make([]uint32, n) // even records are versions of one key, odd ones of another
	for i := range prev {
		prev[i] = uint32(max(0, i-1))
	}
	var h histories
	for _, newest := range []uint32{100, 98, 300, 998, 500, 998} {
		for _, last := range []uint32{0, 2, 50, 97} {
			found, known := h.find(prev, 7, newest, func(rec uint32) bool { return rec <= last })
			if want := last&^1 + 1; !known || found != want {
				t.Fatalf("from %d the newest up to %d is %d, %v, want %d", newest, last, found, known, want)
			}
		}
		if found, known := h.find(prev, 7, newest, func(rec uint32) bool { return false }); !known || found != 0 {
			t.Errorf("from %d nothing is seen, and %d found, %v", newest, found, known)
		}
	}
	if found, known := h.find(prev, 7, 997, func(rec uint32) bool { return true }); known {
		t.Errorf("%d found of a key with the same hash", found)
	}
	if found, known := h.find(prev, 8, 997, func(rec uint32) bool { return rec <= 1 }); !known || found != 2 {
		t.Errorf("of another key %d is found, %v", found, known)
	}
	if n := len(h.of[7]); n != 500 {
		t.Errorf("a history of %d versions, want 500", n)
	}
}
