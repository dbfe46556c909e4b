// Package report has what the engine tells about itself: events as they happen, and
// statistics.
//
// # Concurrency
//
// Counters may be counted and read at once, and an Emitter used; the rest is plain data.
package report

import (
	"log/slog"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	EventRecovery        EventKind = iota + 1 // progress of Open after an unclean end
	EventFlush                                // memtables became tables, or at rest were merged with them
	EventCompaction                           // tables were merged
	EventStall                                // writers had to wait
	EventBackgroundError                      // flush, compaction or sync failed
	EventNoSpace                              // the disk is full; work resumes when space returns
)

// Event is one thing that happened in the background.
type Event struct {
	Kind     EventKind
	Time     time.Time
	Duration time.Duration // of the whole, once it is over
	Done     int64         // bytes done
	Total    int64         // bytes to do, if known
	Level    int           // compaction: level written to
	Err      error
}

var names = [...]string{"", "recovery", "flush", "compaction", "stall", "background error", "no space"}

// Log writes the event to a logger: errors as such, the rest for debugging.
func (ev *Event) Log(to *slog.Logger) {
	attrs := []any{"done", ev.Done, "total", ev.Total, "duration", ev.Duration}
	if ev.Err != nil {
		to.Error("cairn: "+names[ev.Kind], append(attrs, "err", ev.Err)...)
		return
	}
	to.Debug("cairn: "+names[ev.Kind], attrs...)
}
