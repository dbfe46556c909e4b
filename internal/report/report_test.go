package report

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// TestLog: each kind of event has its name in the log, and errors stand there as such.
func TestLog(t *testing.T) {
	for kind, name := range map[EventKind]string{
		EventRecovery: "recovery", EventFlush: "flush", EventCompaction: "compaction", EventStall: "stall",
		EventBackgroundError: "background error", EventNoSpace: "no space",
	} {
		for err, want := range map[error]string{
			nil:                       `level=DEBUG msg="cairn: ` + name + `" done=3 total=7 duration=1s`,
			errors.New("what failed"): `level=ERROR msg="cairn: ` + name + `" done=3 total=7 duration=1s err="what failed"`,
		} {
			var out bytes.Buffer
			ev := Event{Kind: kind, Done: 3, Total: 7, Duration: time.Second, Err: err}
			ev.Log(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
			if line := strings.TrimSuffix(out.String(), "\n"); !strings.HasSuffix(line, want) {
				t.Errorf("%s, want %s", line, want)
			}
		}
	}
}

// TestCount: an event counts for its kind alone, and of errors the last one is kept.
func TestCount(t *testing.T) {
	var c Counters
	want := func(flushes, compactions int64, last error) {
		t.Helper()
		var got error
		if err := c.LastError.Load(); err != nil {
			got = *err
		}
		if c.Flushes.Load() != flushes || c.Compactions.Load() != compactions || got != last {
			t.Errorf("%d flushes, %d compactions, %v; want %d, %d, %v", c.Flushes.Load(), c.Compactions.Load(), got, flushes, compactions, last)
		}
	}
	failed, full := errors.New("failed"), errors.New("full")
	c.Count(Event{Kind: EventFlush})
	c.Count(Event{Kind: EventCompaction})
	c.Count(Event{Kind: EventCompaction})
	c.Count(Event{Kind: EventStall})
	c.Count(Event{Kind: EventRecovery, Err: failed})
	want(1, 2, nil)
	c.Count(Event{Kind: EventBackgroundError, Err: failed})
	want(1, 2, failed)
	c.Count(Event{Kind: EventNoSpace, Err: full})
	want(1, 2, full)
}

// TestAddState: tables count for their level, those of a large transaction for level 0, memtables as log.
func TestAddState(t *testing.T) {
	table := func(num uint64) *base.TableMeta {
		return &base.TableMeta{Num: num, Size: int64(num), RawBytes: int64(10 * num), Entries: 100 * num}
	}
	version := &manifest.Version{L0: []manifest.Run{{Tables: []*base.TableMeta{table(1), table(2)}}, {Tables: []*base.TableMeta{table(4)}}}}
	version.Levels[manifest.Bottom] = []*base.TableMeta{table(8)}
	ingested := []*tree.Handle{{Meta: table(16)}, {Meta: table(32)}}
	rs := &tree.State{Version: version, Runs: make([]tree.Run, 3), Layers: []*tree.Layer{
		{Mem: &tree.Memory{Replayed: 1000}},
		{Ingest: []tree.Run{{Tables: ingested[:1]}, {Tables: ingested[1:]}}},
		{Mem: &tree.Memory{Replayed: 2000}},
	}}
	var s Stats
	s.AddState(rs)
	if s.Tables != 6 || s.RawBytes != 630 || s.Entries != 6300 || s.LogBytes != 3000 || s.DiskBytes != 3063 || s.Runs != 6 {
		t.Errorf("%+v", s)
	}
	for level, l := range s.Levels {
		want := map[int]LevelStats{0: {5, 1 + 2 + 4 + 16 + 32}, manifest.Bottom: {1, 8}}[level]
		if l != want {
			t.Errorf("level %d: %+v, want %+v", level, l, want)
		}
	}
}
