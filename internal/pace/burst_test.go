package pace

import (
	"testing"
	"time"
)

// A burst lasts for some seconds, while commits come fast, and what it has gathered may be there
// for some more.
func TestBurst(t *testing.T) {
	const much, little = 1 << 40, 1
	var b Burst
	if b.Lasts(much) || b.Left() != 0 {
		t.Errorf("before any burst: lasts %v, %v left", b.Lasts(much), b.Left())
	}
	for _, c := range []struct {
		age      time.Duration
		bytes    int64
		lasts    bool
		from, to float64
	}{
		{0, much, true, 1, 1}, {longestBurst - time.Second, much, true, 1, 1}, {longestBurst, much, false, 0.9, 1},
		{time.Second, 2 * slowestBurst, true, 1, 1}, {time.Second, slowestBurst, false, 1, 1}, {time.Second, little, false, 1, 1},
		{longestBurst + workedOff/2, much, false, 0.4, 0.5}, {longestBurst + workedOff, much, false, 0, 0}, {time.Hour, much, false, 0, 0},
	} {
		b.Begin()
		b.begun.Add(-int64(c.age))
		if left := b.Left(); b.Lasts(c.bytes) != c.lasts || left < c.from || left > c.to {
			t.Errorf("%v after it began, %d bytes: lasts %v, %v left", c.age, c.bytes, b.Lasts(c.bytes), left)
		}
	}
}
