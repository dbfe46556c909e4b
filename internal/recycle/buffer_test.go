package recycle

import "testing"

// TestBuffer: the largest buffer is kept, for one who needs no larger one, as long as somebody wants such, and
// counted so long.
func TestBuffer(t *testing.T) {
	counted := int64(0)
	b := Buffer{Count: func(n int64) { counted += n }}
	expect := func(want int64, buf []byte, length int) {
		t.Helper()
		if cap(buf) != length || len(buf) != 0 || counted != want {
			t.Errorf("a buffer of %d, %d bytes counted, want %d, %d", cap(buf), counted, length, want)
		}
	}
	keep := func(n int) { b.Keep(make([]byte, 7, n), 3000) }
	expect(0, b.Take(1), 0)
	keep(1000)
	keep(900)
	expect(1000, nil, 0)
	keep(2000)
	expect(2000, nil, 0)
	keep(3001)
	expect(2000, nil, 0)
	expect(0, b.Take(2000), 2000)
	keep(2000)
	expect(0, b.Take(2001), 0)
	keep(2000)
	b.Age()
	expect(2000, nil, 0)
	b.Age()
	expect(0, b.Take(1), 0)
}
