package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/view"
	"github.com/cairndb/cairn/vfs/memfs"
)

const rows = 5000 // of a table

// roomForOne is a share in which one index can be built, and no other beside it.
const roomForOne = 170 << 10

type store struct {
	Indexer
	view   view.View
	t      *testing.T
	disk   *memfs.FS
	budget *arena.Budget
	ctx    context.Context
	stop   func()
	done   sync.WaitGroup
	events chan report.Event
	opened []*tree.Handle // the youngest first
	made   int
	unused atomic.Int32 // of these, those that nobody refers to any more
}

// newStore is a store of tables of so many rows, the youngest last, of which none has an index. Indexes may take share
// bytes.
func newStore(t *testing.T, share int64, tables ...int) *store {
	t.Helper()
	s := &store{t: t, disk: memfs.New(), budget: arena.NewBudget(64 << 20), events: make(chan report.Event, 10)}
	s.view.Init(1<<20, func(int64) {})
	pages := cache.New(s.budget, s.view.Epochs)
	s.View, s.Emit = &s.view, func(ev report.Event) { s.events <- ev }
	s.Tables = &tablefiles.Files{FS: s.disk, Pages: pages, Budget: s.budget, Share: share}
	s.Tables.Unused = func(h *tree.Handle) {
		h.Reader.Close()
		s.unused.Add(1)
	}
	s.Init()
	for _, rows := range tables {
		s.add(rows)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	t.Cleanup(func() {
		s.stop()
		s.done.Wait()
		s.view.Drop()
		if n := int(s.unused.Load()); n != s.made {
			t.Errorf("%d tables of %d are not used any more", n, s.made)
		}
		pages.Close()
	})
	return s
}

// add makes a table and publishes it on top of the others.
func (s *store) add(rows int) {
	s.t.Helper()
	s.made++
	num := uint64(s.made)
	f, err := s.disk.Create(s.Tables.Path(num))
	s.ok(err)
	w := table.NewWriter(f, table.WriterOptions{Num: num})
	for i := range rows {
		s.ok(w.Add(fmt.Appendf(nil, "%06d", i), num, base.KindPut, nil))
	}
	meta, err := w.Finish()
	s.ok(err)
	h, err := s.Tables.Open(&meta)
	s.ok(err)
	s.opened = append([]*tree.Handle{h}, s.opened...)
	version := new(manifest.Version)
	for _, h := range s.opened {
		version.L0 = append(version.L0, manifest.Run{ID: h.Meta.Num, Tables: []*base.TableMeta{h.Meta}})
	}
	s.view.Publish(tree.NewState(nil, version, func(m *base.TableMeta) *tree.Handle { return s.opened[num-m.Num] }))
	s.view.Epochs.Collect()
}

func (s *store) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) run() { s.done.Go(func() { s.Run(s.ctx) }) }

// await waits until a number of tables have an index, the youngest ones, and nothing is promised to others.
func (s *store) await(what string, indexes int) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		n := 0
		for n < len(s.opened) && s.opened[n].Index() != nil {
			n++
		}
		if n == indexes && s.Tables.Promised() == 0 {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: the %d youngest tables have an index, want %d", what, n, indexes)
		}
	}
	for i, h := range s.opened {
		if has := h.Index() != nil; has != (i < indexes) {
			s.t.Errorf("%s: table %d has an index: %v", what, h.Meta.Num, has)
		}
	}
	if used := s.budget.UsedBy(arena.ClassIndex); used > s.Tables.Share || (used == 0) != (indexes == 0) {
		s.t.Errorf("%s: %d indexes take %d bytes of %d", what, indexes, used, s.Tables.Share)
	}
}

// TestAll: all tables get an index, also those that come later.
func TestAll(t *testing.T) {
	s := newStore(t, 16<<20, rows, rows, rows)
	for range 3 {
		s.Wake() // it waits for nobody
	}
	s.run()
	s.await("at first", 3)
	s.add(rows)
	s.Wake()
	s.await("one more", 4)
}

// TestShare: the youngest tables get an index as long as there is room for it, and another when one goes.
func TestShare(t *testing.T) {
	s := newStore(t, roomForOne, rows, rows, rows)
	s.run()
	s.await("room for one", 1)
	first := s.opened[0]
	first.SearchOnly.Store(true)
	old := first.AttachIndex(nil)
	s.view.Epochs.Retire(func() { old.Free() })
	s.opened = s.opened[1:]
	s.Wake()
	s.await("room again", 1)
}

// TestTooLarge: a table of which no index has room does not keep others from theirs.
func TestTooLarge(t *testing.T) {
	s := newStore(t, roomForOne, rows, 4*rows)
	s.run()
	large := s.opened[0]
	s.opened = s.opened[1:]
	if s.await("behind a large one", 1); large.Index() != nil {
		t.Error("the large one has an index")
	}
}

// TestDamage: a table that cannot be read is reported, once, and the others get their indexes.
func TestDamage(t *testing.T) {
	s := newStore(t, 16<<20, rows, rows, rows)
	damaged := s.opened[0]
	s.ok(s.disk.Corrupt(s.Tables.Path(damaged.Meta.Num), 100, 1))
	s.run()
	if ev := <-s.events; ev.Kind != report.EventBackgroundError || !errors.Is(ev.Err, base.ErrCorrupt) {
		t.Errorf("told of %+v", ev)
	}
	s.opened = s.opened[1:]
	s.await("of three", 2)
	s.Wake()
	s.Wake()
	s.await("of three", 2)
	if !damaged.SearchOnly.Load() || damaged.Index() != nil || len(s.events) != 0 {
		t.Errorf("damaged: search only %v, index %v, told of %d more", damaged.SearchOnly.Load(), damaged.Index() != nil, len(s.events))
	}
}

// TestEnd: it ends with its context, whatever it waits for, also where there is no State any more.
func TestEnd(t *testing.T) {
	s := newStore(t, 16<<20, rows)
	s.stop()
	s.run()
	s.done.Wait()
	s.await("ended before it began", 0)
	s.view.Drop()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.run()
	s.Wake()
	s.stop()
	s.done.Wait()
}
