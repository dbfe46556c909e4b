package engine

import (
	"time"

	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/recovery"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tree"
)

// recover brings the store to the state of its last durable commit, or beyond.
// names are those in its directory. When it is done the store is as if it had been
// closed, and nothing it rests on is only in the page cache (E6).
func (e *Engine) recover(names []string) error {
	start := time.Now()
	log := e.recoveryLog()
	err := log.Run(names)
	for _, h := range append(log.Opened, log.Written...) {
		e.handles[h.Meta.Num] = h
	}
	if err != nil {
		e.giveUp(log.Written, err)
		return err
	}
	e.commit.nextSeq = log.NextSeq
	if n, from := log.Dropped(); n > 0 {
		e.recovery.DroppedBytes, e.recovery.DroppedFrom = n, uint64(from)
	}
	if t := e.ledger.Opened.Tail; t.Bytes > 0 {
		e.recovery.DroppedBytes += t.Bytes
	}
	if e.cfg.ReadOnly {
		e.showRecovered(log.Layers)
	} else if err := e.recordRecovery(log); err != nil {
		return err
	}
	e.recovery.Duration = time.Since(start)
	e.emit(report.Event{Kind: report.EventRecovery, Done: log.Total, Total: log.Total, Duration: e.recovery.Duration})
	return nil
}

func (e *Engine) recoveryLog() *recovery.Log {
	return &recovery.Log{
		FS: e.cfg.FS, Dir: e.cfg.Dir, Store: e.ledger.Store, ReadOnly: e.cfg.ReadOnly, Arenas: e.buffers.Pool, Tables: e.tables,
		FreeMemory:  e.buffers.Free,
		WriteMemory: e.merger.FlushReplayed,
		Together:    e.cfg.TogetherBytes(),
		NextFileNum: e.ledger.Next,
		Progress:    func(done, total int64) { e.emit(report.Event{Kind: report.EventRecovery, Done: done, Total: total}) },
		State:       e.ledger.Opened,
	}
}

// giveUp takes back the tables of a recovery that failed with err: on a full disk
// a failed Open must not make things worse.
func (e *Engine) giveUp(written []*tree.Handle, err error) {
	for _, h := range written {
		delete(e.handles, h.Meta.Num)
	}
	e.merger.Withdraw(written, err)
}

// recordRecovery writes a new manifest that needs no log, and makes it the live one.
func (e *Engine) recordRecovery(log *recovery.Log) error {
	num := e.ledger.NewNum()
	snapshot := *log.State
	snapshot.Segments, snapshot.Provisional = nil, 0
	edit := snapshot.Snapshot()
	edit.LogStart = manifest.NoLog(e.ledger.Next())
	edit.NextFileNum = e.ledger.Next()
	if e.recovery.DroppedBytes > 0 {
		edit.Dropped = &manifest.Dropped{Bytes: uint64(e.recovery.DroppedBytes), From: e.recovery.DroppedFrom}
	}
	if err := manifest.CreateSealed(e.cfg.FS, e.cfg.Dir, e.ledger.Store, num, edit); err != nil {
		e.giveUp(log.Written, err)
		return err
	}
	state, err := manifest.Recover(e.cfg.FS, e.cfg.Dir, false)
	if err != nil {
		return err
	}
	e.ledger.Opened = state
	e.publish(e.newState(nil, state.Version))
	return nil
}

// showRecovered makes the replayed memtables readable without writing anything.
func (e *Engine) showRecovered(layers []*tree.Layer) {
	e.publish(e.newState(layers, e.ledger.Opened.Version))
	for _, l := range layers {
		if l.Mem != nil {
			l.Mem.Unref() // the state holds it
		}
	}
}
