package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/recovery"
	"github.com/cairndb/cairn/internal/report"
)

// recover brings the store to the state of its last durable commit, or beyond.
// names are those in its directory. When it is done the store is as if it had been
// closed, and nothing it rests on is only in the page cache (E6).
func (e *Engine) recover(names []string) error {
	start := time.Now()
	log := e.recoveryLog()
	err := log.Run(names)
	e.installer.Handles.Add(append(log.Opened, log.Written...))
	if err != nil {
		e.installer.GiveUp(log.Written, err)
		return err
	}
	e.commit.nextSeq = log.NextSeq
	dropped := log.Dropped()
	e.recovery.DroppedBytes, e.recovery.DroppedFrom = int64(dropped.Bytes), dropped.From
	state, err := manifest.Recover(e.cfg.FS, e.cfg.Dir, false)
	if err != nil {
		return err
	}
	e.ledger.Opened = state
	e.installer.Publish(nil, state.Version)
	e.recovery.Duration = max(time.Since(start), 1) // also where the clock is coarse: there was one
	e.events.Emit(report.Event{Kind: report.EventRecovery, Done: log.Total, Total: log.Total, Duration: e.recovery.Duration})
	return nil
}

// joinRuns joins small runs of level 0 where there are many: each recovery leaves one, and the store may live too briefly for
// the compactor to get there. What fails, for want of space say, is left to that, unless it was for a table that is left out
// from then on. Nobody else merges yet.
func (e *Engine) joinRuns() {
	unreadable := func() int { return len(e.merger.Leftovers.Unreadable()) }
	for known := -1; known < unreadable(); {
		known = unreadable()
		if job, ok := compact.JoinSmall(e.State().Version, e.merger.Inputs(false)); !ok || e.runJob(&job, e.mustStop) == nil {
			return
		}
	}
}

func (e *Engine) recoveryLog() *recovery.Log {
	return &recovery.Log{
		FS: e.cfg.FS, Dir: e.cfg.Dir, Store: e.ledger.Store, Arenas: e.buffers.Pool, Tables: e.tables,
		FreeMemory:  e.buffers.Free,
		WriteMemory: e.merger.FlushReplayed,
		Withdraw:    e.merger.Withdraw,
		Together:    e.cfg.TogetherBytes(),
		NewNum:      e.ledger.TakeNum,
		NextFileNum: e.ledger.Next,
		Progress: func(done, total int64) {
			e.events.Emit(report.Event{Kind: report.EventRecovery, Done: done, Total: total})
		},
		State: e.ledger.Opened,
	}
}
