package config

import "testing"

// Bulky memtables may wait on top of ten others, as far as a quarter of the memory reaches, and commits
// are slowed before they are stopped.
func TestBulkyMemtables(t *testing.T) {
	for _, c := range []struct {
		memory        int64
		layers, bulky int
		limit         int64
		free          int
	}{
		{6 << 30, 10, 0, 6 << 28, 0}, {6 << 30, 11, 0, 0, 0}, {6 << 30, 11, 1, 6 << 28, 1},
		{6 << 30, 20, 9, 0, 9}, {6 << 30, 20, 10, 6 << 28, 10}, {6 << 30, 24, 20, 6 << 28, 11},
		{64 << 30, 24, 20, 64 << 28, 14}, {64 << 30, 25, 20, 0, 14},
		{1 << 30, 11, 8, 1 << 28, 0}, {64 << 20, 3, 2, 32 << 20, 0}, {64 << 20, 4, 3, 16 << 20, 0},
	} {
		cfg := Config{Memory: c.memory}
		if limit, free := cfg.MemtableLimit(c.layers, c.bulky), cfg.FreeInBurst(c.bulky); limit != c.limit || free != c.free {
			t.Errorf("%d MiB, %d layers, %d bulky: limit %d, %d more are free; want %d, %d", c.memory>>20, c.layers, c.bulky, limit, free, c.limit, c.free)
		}
		if most := mostWaiting + min(c.bulky, bulkyOnTop); FreeMemtables+cfg.FreeInBurst(c.bulky) >= most {
			t.Errorf("%d MiB, %d bulky: commits are not slowed before they are stopped", c.memory>>20, c.bulky)
		}
	}
}
