package engine

import "testing"

// TestKeptWrites: the largest buffer is kept, for one who needs no larger one, as long as somebody wants such, and
// counted so long.
func TestKeptWrites(t *testing.T) {
	e := mustOpen(t, indexTestConfig(t.TempDir(), 64<<20))
	expect := func(counted int64, buf []byte, want int) {
		t.Helper()
		if cap(buf) != want || len(buf) != 0 || e.CountedWrites() != counted {
			t.Errorf("a buffer of %d, %d bytes counted, want %d, %d", cap(buf), e.CountedWrites(), want, counted)
		}
	}
	expect(0, e.TakeWrites(1), 0)
	e.KeepWrites(make([]byte, 7, 1000))
	e.KeepWrites(make([]byte, 7, 900))
	expect(1000, nil, 0)
	e.KeepWrites(make([]byte, 7, 2000))
	expect(2000, nil, 0)
	expect(0, e.TakeWrites(2000), 2000)
	e.KeepWrites(make([]byte, 7, 2000))
	expect(0, e.TakeWrites(2001), 0)
	e.KeepWrites(make([]byte, 7, 2000))
	e.ageWrites()
	expect(2000, nil, 0)
	e.ageWrites()
	expect(0, e.TakeWrites(1), 0)
}
