package memtable

import "testing"

// TestDropWaitsForNobody: it is called where all commits wait, and others may be sorting.
func TestDropWaitsForNobody(t *testing.T) {
	s, bytes := new(Stack), int64(0)
	s.Init(1<<30, func(delta int64) { bytes += delta }, func() uint64 { return 0 })
	later := s.After(nil, 0)
	s.sorting.Lock()
	later.sorting.Lock()
	later.Drop()
	later.sorting.Unlock()
	s.sorting.Unlock()
	if _, ok := later.Append(nil, nil, []*Table{NewGrowing(1)}, 9); ok || bytes != 0 {
		t.Errorf("made again after Drop: %v, %d bytes", ok, bytes)
	}
}
