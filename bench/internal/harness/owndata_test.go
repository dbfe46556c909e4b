package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Reads of the user's own records, of mixed sizes, are compared as those of made data.
func TestWrongAnswersAreSeenWithOwnRecords(t *testing.T) {
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "{\"id\":%d,\"text\":%q}\r\n", i, strings.Repeat("ü", 1<<(i%15)))
	}
	file := &data.File{Path: filepath.Join(t.TempDir(), "own.jsonl"), Key: "id"}
	if err := os.WriteFile(file.Path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine, suite string
		status        result.Status
	}{
		{"good", "w1", result.OK}, {"loses", "w1", result.Void}, {"forgets at close", "w1", result.Void},
		{"good", "w4", result.OK}, {"stale", "w4", result.Void}, {"loses", "ycsb", result.Void}, {"loses", "load", result.Void},
	} {
		d, err := engine.Find(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		w, err := workload.Find(c.suite)
		if err != nil {
			t.Fatal(err)
		}
		plan := NewPlan([]engine.Driver{d}, []workload.Workload{w}, workload.Scale{Counts: []int{30}, ValueBytes: 1000, OwnKeys: 30, Sync: []bool{false}, Seed: 1, Data: file})
		plan.Rounds, plan.Limit = 1, time.Minute
		got, err := Run(t.Context(), plan, Config{Dir: t.TempDir(), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if cell := got.Cells[0]; cell.Status != c.status || !strings.HasSuffix(cell.Workload, "/data") {
			t.Errorf("%s %s: %s, want %s: %s", c.engine, cell.Workload, cell.Status, c.status, cell.Reason)
		}
	}
}
