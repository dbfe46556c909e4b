// Package installer changes what tables and memtables a store has: it has tables written of memtables, of a compaction, or
// of everything, records that in the manifest, publishes a State with them, and then lets go of what only the State before
// needed. When that is done, and what failed is to be tried again, is the engine's business.
//
// # Invariants
//
// Of docs/INVARIANTS.md: E5 (nothing is removed too early), E6 (a poisoned store records no edit), E8 (lock order).
//
// # Concurrency
//
// Flush, Job, All and EndLog may be called by any goroutines at once; no lock is held. Edits are one after the other
// under the ledger's lock, and seen under the commit lock, which is taken after it.
package installer

import (
	"sync"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/durability"
	"github.com/cairndb/cairn/internal/indexer"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/logfiles"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/merger"
	"github.com/cairndb/cairn/internal/obsolete"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
)

// Installer installs tables. All but what is said to be guarded is set before its first use.
type Installer struct {
	View     *view.View
	Merger   *merger.Merger
	Indexer  *indexer.Indexer
	Ledger   *ledger.Ledger
	Logs     *logfiles.Files
	Obsolete *obsolete.Files

	Commits sync.Locker     // the commit lock
	Changed *sync.Cond      // of that lock: Edited or LetGo has changed
	Log     *durability.Log // guarded by it
	Poison  func(error)     // is told of an error after which the store must not be written. No lock is held

	// Of these the commit lock is held.
	Refusal    func(flush bool) error // why nothing may be recorded, or no flush
	Closing    func() bool            // no commit comes any more
	Uses       func() bool            // there is a segment that commits may go to, or one is being made
	Publishing func(*tree.State)      // is told of a State about to be published

	// Guarded by the commit lock.
	Handles tree.Handles // the open tables
	Edited  uint64       // edits that are visible
	LetGo   uint64       // those after which what is not needed any more was let go of
}

// Publish replaces what readers see: layers above the tables of v. The commit lock is held.
func (in *Installer) Publish(layers []*tree.Layer, v *manifest.Version) {
	rs := tree.NewState(layers, v, in.Handles.Of)
	in.Publishing(rs)
	in.View.Publish(rs)
}

// Flush writes memtables, the newest first, to one run of level 0, or installs the tables of a
// large transaction there: as many runs as it had private ones, told apart by their sequences.
func (in *Installer) Flush(layers []*tree.Layer) (tables []*tree.Handle, err error) {
	edit, check := &manifest.Edit{}, &tree.Check{Layers: layers}
	defer check.Wait()
	oldest := layers[len(layers)-1]
	if oldest.Mem == nil {
		edit.IngestedThrough, edit.LastSeq = oldest.Seq, oldest.Seq
		tables = oldest.Tables()
		for _, h := range tables {
			edit.Added = append(edit.Added, manifest.Added{Run: h.Meta.GlobalSeq, Table: h.Meta})
		}
		return tables, in.install(edit, tables, check)
	}
	var mems []*tree.Memory
	for _, l := range layers {
		if mems = append(mems, l.Mem); l.Mem.Len() > 0 { // else its base may come from commits that failed
			edit.LastSeq = max(edit.LastSeq, l.Mem.LastSeq())
		}
	}
	if tables, err = in.Merger.Flush(mems, in.View.State(), oldest, check.Begin); err != nil {
		return nil, err
	}
	edit.Added = merger.Added(0, max(edit.LastSeq, 1), tables)
	return tables, in.installWritten(edit, tables, check)
}

// Job merges a job's tables, or moves them where nothing has to be rewritten. stop returns why it has to end.
func (in *Installer) Job(job *compact.Job, stop func() error) (tables []*tree.Handle, err error) {
	edit := job.Edit()
	if !job.Move {
		if tables, err = in.Merger.Job(job, stop); err != nil {
			in.Merger.NoteFailed(err)
			return nil, err
		}
	}
	edit.Added = append(edit.Added, merger.Added(job.OutLevel, job.OutRun, tables)...)
	return tables, in.installWritten(edit, tables, &tree.Check{})
}

// All merges a sealed state, memtables and tables, to the last level. The store may be closing. stop returns why it has to end.
func (in *Installer) All(sealed *tree.State, closing bool, effort tablefiles.Effort, stop func() error) ([]*tree.Handle, error) {
	check := &tree.Check{Layers: sealed.Layers}
	defer check.Wait()
	tables, edit, err := in.Merger.All(sealed, closing, effort, stop, check.Begin)
	if err == nil {
		err = in.installWritten(edit, tables, check)
	}
	if err != nil {
		in.Merger.NoteFailed(err)
	}
	return tables, err
}

// EndLog records that no log is needed, if there is nothing in it.
func (in *Installer) EndLog() {
	in.Ledger.Lock()
	in.Commits.Lock()
	edit := &manifest.Edit{LogStart: in.logStartWithout(nil)}
	in.Commits.Unlock()
	ordinal, err := in.Ledger.Append(edit)
	if err == nil {
		in.show(edit, ordinal, nil, nil)
	}
	in.Ledger.Unlock()
	if err == nil {
		in.letGo(recorded{ordinal, edit.LogStart}, nil)
	}
}

// GiveUp takes back the tables of a recovery that failed with err: on a full disk
// a failed Open must not make things worse.
func (in *Installer) GiveUp(written []*tree.Handle, err error) {
	for _, h := range written {
		delete(in.Handles, h.Meta.Num)
	}
	in.Merger.Withdraw(written, err)
}

// install makes an edit durable and then visible: tables become part of the version,
// the layers they came from, if any, go, if these were what had been committed when they were read.
func (in *Installer) install(edit *manifest.Edit, tables []*tree.Handle, from *tree.Check) error {
	if err := from.Err(); err != nil {
		in.Poison(err)
		return err
	}
	done, err := in.record(edit, tables, from.Layers)
	if err == nil {
		in.letGo(done, from.Layers)
	}
	return err
}

// installWritten is install of tables that were written for it, which are given up if it fails.
func (in *Installer) installWritten(edit *manifest.Edit, tables []*tree.Handle, from *tree.Check) error {
	err := in.install(edit, tables, from)
	if err != nil {
		in.Merger.Withdraw(tables, err)
	}
	return err
}

// recorded is an edit that the manifest has, and where the log starts since.
type recorded struct{ ordinal, logStart uint64 }

// record makes an edit durable and then visible, unless that is refused.
func (in *Installer) record(edit *manifest.Edit, tables []*tree.Handle, flushed []*tree.Layer) (done recorded, err error) {
	in.Ledger.Lock()
	defer in.Ledger.Unlock()
	in.Commits.Lock()
	if err = in.Refusal(len(flushed) > 0); len(flushed) > 0 {
		edit.LogStart = in.logStartWithout(flushed)
	}
	in.Commits.Unlock()
	if err != nil {
		return done, err
	}
	ordinal, err := in.Ledger.Append(edit)
	if err != nil {
		return done, err
	}
	done = recorded{ordinal, in.Ledger.State().LogStart}
	in.show(edit, ordinal, tables, flushed)
	in.Ledger.Roll()
	return done, nil
}

// letGo gives back what only the State before an edit needed: log segments, memory, tables
// that were merged. That takes milliseconds, and a sync of a segment that is under way has
// to end, so no lock is held that commits wait for.
func (in *Installer) letGo(done recorded, flushed []*tree.Layer) {
	in.Logs.LetGo(tree.SegmentsOf(flushed), done.logStart, done.ordinal)
	in.View.Epochs.Collect()
	in.Commits.Lock()
	defer in.Commits.Unlock()
	in.LetGo++
	in.Changed.Broadcast()
}

// show publishes the state after an edit.
func (in *Installer) show(edit *manifest.Edit, ordinal uint64, tables []*tree.Handle, flushed []*tree.Layer) {
	in.Commits.Lock()
	defer in.Commits.Unlock()
	in.Handles.Add(tables)
	in.Publish(in.View.State().Without(flushed), in.Ledger.State().Version)
	in.retireFiles(edit, ordinal, flushed)
	in.Edited++
	in.Changed.Broadcast()
	in.Indexer.Wake()
}

// logStartWithout returns the first log segment that is needed once what the layers
// hold is in the tables: that of the oldest memtable left, none when the store comes
// to rest or is being closed. The commit lock and the ledger's are held.
func (in *Installer) logStartWithout(flushed []*tree.Layer) (start uint64) {
	rs := in.View.State()
	if len(rs.Layers) == len(flushed) && (in.Closing() || !in.Uses()) {
		return manifest.NoLog(in.Ledger.Next())
	}
	return rs.LogStartWithout(flushed)
}

// retireFiles notes the tables an installed edit has made useless, and the segments that
// need not be synced any more.
func (in *Installer) retireFiles(edit *manifest.Edit, at uint64, flushed []*tree.Layer) {
	for _, r := range edit.Removed {
		h := in.Handles[r.Num]
		if edit.Adds(r.Num) {
			continue // moved to another level
		}
		delete(in.Handles, r.Num)
		in.Merger.Leftovers.Drop(r.Num)
		path := base.FilePath(in.Ledger.Dir, base.FileTable, r.Num)
		in.Obsolete.Add(obsolete.File{Path: path, Edit: at, Closed: &h.Closed, Size: h.Meta.Size})
	}
	for _, seg := range tree.SegmentsOf(flushed) {
		if in.Closing() && seg.Synced().Offset() < seg.Written() {
			in.Logs.NeverSynced(seg.Num)
		}
		in.Log.Drop(seg)
	}
}
