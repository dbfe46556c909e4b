package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// A fake writes its files when it is closed. So the sizes that are taken while it is open
// are zero, and these columns say that they are.
func TestSizesOfOpenStoresAreMarked(t *testing.T) {
	marked := 0
	for _, suite := range []string{"w0", "w0/published", "w1", "w1/published", "w4", "w4/published", "ycsb", "load", "large", "memory"} {
		name := "good"
		if suite == "ycsb" {
			name = "cairn" // it scans: the store of a fake lacks what E inserts, and has no size
		}
		got, err := run(t, t.Context(), t.TempDir(), suite, 1, time.Minute, name)
		if err != nil {
			t.Fatal(err)
		}
		sizes := 0
		for _, c := range got.Workloads[0].Columns {
			if c.Unit != result.Bytes || !strings.HasPrefix(c.Key, "disk") {
				if c.Open {
					t.Errorf("%s: %s is no size of a store", suite, c.Key)
				}
				continue
			}
			sizes++
			size, known := got.Cells[0].Metrics[c.Key]
			emptied := suite == "large" && strings.HasPrefix(c.Key, "disk_end") // by its deletes
			if !known || c.Open && size > 0 || !c.Open && !emptied && size == 0 {
				t.Errorf("%s: %s is %v (known: %v), taken while the store was open: %v", suite, c.Title, size, known, c.Open)
			}
			if c.Open {
				marked++
			}
		}
		if sizes == 0 {
			t.Errorf("%s: no size was taken", suite)
		}
	}
	if marked != 4 {
		t.Errorf("%d columns of sizes of open stores, want 4", marked)
	}
}
