package tablefiles

import "testing"

func TestBlockBytes(t *testing.T) {
	const memory = 64 << 20
	for _, c := range []struct {
		raw  int64
		want int
	}{
		{0, 64 << 10},
		{memory / 2, 64 << 10}, // decoded in memory
		{memory/2 + 1, 8 << 10},
		{4 * memory, 8 << 10},
		{10 * memory, 8 << 10},
		{19 * memory, 8 << 10},
		{20 * memory, 16 << 10}, // 8 KiB: 163840 blocks of 84 B are more than a fifth of the memory
		{39 * memory, 16 << 10},
		{40 * memory, 32 << 10},
		{80 * memory, 64 << 10},
		{1 << 50, 64 << 10},
	} {
		if got := blockBytes(c.raw, memory); got != c.want {
			t.Errorf("%d bytes of tables: blocks of %d, want %d", c.raw, got, c.want)
		}
	}
}
