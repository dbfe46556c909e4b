package workload

import (
	"strings"
	"testing"
)

// A small set, as the user's own records may be, is not a quarter of a memory that
// engines refuse: they get the least, and the conditions say so.
func TestSmallSetsGetTheLeastMemory(t *testing.T) {
	w, err := Find("memory")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n      int
		memory int64
		says   string
	}{
		{1000, 1 << 20, "1 MiB, the least every engine takes, 101 % of the set: TOO SMALL A SET"},
		{8000, 8000 * (1024 + 16) / 4, "1 MiB, a quarter of the set"},
	} {
		p := w.Cells(Scale{Counts: []int{c.n}, ValueBytes: 1024, Sync: []bool{false}, Seed: 1})[0]
		if text := strings.Join(w.Conditions(p), "\n"); p.Memory != c.memory || !strings.Contains(text, c.says) {
			t.Errorf("%d keys: %d B of memory, want %d\n%s", c.n, p.Memory, c.memory, text)
		}
	}
}
