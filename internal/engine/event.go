package engine

import "time"

// EventKind says what happened.
type EventKind uint8

const (
	EventRecovery        EventKind = iota + 1 // progress of Open after an unclean end
	EventFlush                                // a memtable became a table
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

func (e *Engine) emit(ev Event) {
	ev.Time = time.Now()
	e.counters.count(ev)
	if e.cfg.Logger != nil {
		e.logEvent(ev)
	}
	if e.cfg.OnEvent != nil {
		e.cfg.OnEvent(ev)
	}
}

func (e *Engine) logEvent(ev Event) {
	names := [...]string{"", "recovery", "flush", "compaction", "stall", "background error", "no space"}
	attrs := []any{"done", ev.Done, "total", ev.Total, "duration", ev.Duration}
	if ev.Err != nil {
		e.cfg.Logger.Error("cairn: "+names[ev.Kind], append(attrs, "err", ev.Err)...)
		return
	}
	e.cfg.Logger.Debug("cairn: "+names[ev.Kind], attrs...)
}
