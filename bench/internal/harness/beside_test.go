package harness

import (
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// The writer and its readers have times to be compared only where all readers read while it
// wrote: Bolt's wait until it has closed the store, Pogreb's are refused.
func TestOnlyReadersBesideTheWriterAreCompared(t *testing.T) {
	got, err := run(t, t.Context(), t.TempDir(), "processes", 1, time.Minute, "cairn", "bbolt", "pogreb")
	if err != nil {
		t.Fatal(err)
	}
	const apart, refused = "its readers were not beside the writer", "a reader in another process: open: "
	for i, want := range []struct{ together, write, read, open string }{
		{"3", "", "", ""}, {"0", apart, apart, apart}, {"0", apart, refused, refused},
	} {
		c := got.Cells[i]
		if c.Status != result.OK {
			t.Fatalf("%s: %s %s", c.Engine, c.Status, c.Reason)
		}
		if together := c.Metrics["together"]; (together == 3) != (want.together == "3") {
			t.Errorf("%s: %v readers beside the writer", c.Engine, together)
		}
		for key, reason := range map[string]string{"write": want.write, "read": want.read, "reader_open": want.open} {
			if _, has := c.Metrics[key]; has != (reason == "") || !strings.HasPrefix(c.NA[key], reason) {
				t.Errorf("%s: %s: a figure %v, reason %q, want %q", c.Engine, key, has, c.NA[key], reason)
			}
		}
	}
}
