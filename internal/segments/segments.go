// Package segments makes log segments and the memtables over them.
//
// # Invariants
//
// Of docs/INVARIANTS.md: E4 (a segment is recorded in the manifest before it is used, and either
// durable as a whole by then or provisional).
//
// # Concurrency
//
// One segment is made at a time; the caller sees to that. The ledger is locked meanwhile where the
// segment is recorded, and neither it nor a lock of commits may be held by the caller.
package segments

import (
	"errors"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/durability"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/ledger"
	"github.com/cairndb/cairn/internal/logfiles"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
)

// Maker makes the segments of one store. Its fields are set before it is used.
type Maker struct {
	Memory  int64 // of the store: Options.Memory
	Budget  *arena.Budget
	Buffers *tree.Buffers
	Pages   *cache.Cache
	Tables  *tablefiles.Files
	Ledger  *ledger.Ledger
	Logs    *logfiles.Files
	Epochs  *epoch.Domain
	Log     *durability.Log
	Hurry   func() bool // whether somebody waits for the segment
}

// Plan is what a segment and its memtable are to be like.
type Plan struct {
	Size, Records int  // bytes of the one, room of the other
	Relaxed       bool // few of its commits wait for a sync
	Long          bool // they are worth no copy in memory
}

// mapped reports whether the segment's file is to be its arena: where commits are not synced, or are so long that
// they are written by system calls, from where the caller has them.
func (p Plan) mapped() bool { return p.Relaxed || p.Long }

// Make makes a segment as planned, records it in the manifest, and makes its memtable, of which the
// caller has the only reference. Everything about it is recorded before it is used, and durable unless
// it is provisional. Errors: those of the file system and of the manifest; nothing is left of the
// segment then but, perhaps, one that is recorded and empty.
func (m *Maker) Make(p Plan) (made *tree.Memory, err error) {
	need := int64(p.Size + tree.IndexBytes(p.Size, p.Records))
	if m.Pages.Cramped(need) {
		m.Pages.GiveWay(need, 0)
	}
	made, err = m.make(p)
	for tried := 0; errors.Is(err, arena.ErrNoMemory) && m.Pages.GiveWay(need, tried); tried++ {
		made, err = m.make(p)
	}
	return made, err
}

func (m *Maker) make(p Plan) (*tree.Memory, error) {
	m.awaitMemory(p.Size, tree.IndexBytes(p.Size, p.Records), p.mapped())
	return m.Buffers.Memory(p.Size, p.Records, !m.Hurry(), func(buffer func() ([]byte, error)) (*wal.Segment, error) {
		seg, err := m.segment(p, buffer)
		if err == nil {
			if err = seg.Fill(!p.Relaxed, m.Hurry); err != nil {
				m.Log.SyncUnused(seg)
				seg.Drop()
			}
		}
		return seg, err
	})
}

// awaitMemory makes pages, and buffers that do not fit, give way for buffers of the
// given sizes. If with them the store would exceed Memory, or memtables half of it, it
// waits up to half a second for what was flushed or evicted and may still be read.
func (m *Maker) awaitMemory(arenaBytes, indexBytes int, mapped bool) {
	n := int64(arenaBytes + indexBytes)
	growth := func() int64 {
		if mapped {
			return int64(arenaBytes) + m.Buffers.Growth(indexBytes)
		}
		return m.Buffers.Growth(arenaBytes, indexBytes)
	}
	memtables := func() int64 { return m.Budget.UsedBy(arena.ClassMemtable) }
	for range 2500 {
		m.Epochs.Collect()
		promised := m.Tables.Promised()
		// A buffer that is about to be given back does not serve yet, and comes on top of what does.
		if memtables()+growth() > m.Memory/2 || !m.Pages.Room(growth()+promised) {
			m.Buffers.Trim()
		}
		if m.Pages.Room(growth()+promised) && memtables()-m.Buffers.Spare()+n <= m.Memory/2 || m.Epochs.Pending() == 0 {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// segment makes the file and records it.
func (m *Maker) segment(p Plan, buffer func() ([]byte, error)) (*wal.Segment, error) {
	m.Ledger.Lock()
	defer m.Ledger.Unlock()
	form := logfiles.Form{Size: p.Size, Mapped: p.mapped(), Provisional: p.Relaxed, Zeros: !m.Ledger.New()}
	seg, err := m.Logs.Create(form, buffer)
	if err != nil {
		return nil, err
	}
	named := !m.Ledger.Live() || !seg.Provisional() // a new manifest syncs the directory itself, before it counts
	if named {
		m.Tables.MakeAhead(m.Ledger.NewNum, m.Ledger.GiveBack)
	}
	if !seg.Provisional() {
		err = m.Log.SyncForSegment()
	}
	if err == nil {
		err = m.Ledger.Record(manifest.Segment{Num: seg.Num, File: seg.File}, seg.Provisional())
	}
	if err != nil {
		m.unmake(seg, err)
		return nil, err
	}
	if named {
		m.Tables.NameAhead()
	}
	m.Logs.Add(seg.Num)
	return seg, nil
}

// unmake removes the file of a segment that could not be recorded because of err. Where there was no space for the first manifest its
// number can be used again: a file that a power cut may bring back under it is gone once the next first manifest has made names
// durable, before which none counts that names a segment of that number. A manifest that is there may do so earlier.
func (m *Maker) unmake(seg *wal.Segment, err error) {
	seg.Drop()
	if errors.Is(err, base.ErrPoisoned) { // the manifest may name it
		return
	}
	left := m.Logs.FS.Remove(m.Logs.Path(seg.Num))
	if left == nil && vfs.IsNoSpace(err) && !m.Ledger.Live() {
		m.Ledger.GiveBack(seg.Num)
	}
}
