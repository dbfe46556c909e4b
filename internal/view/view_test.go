package view

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
)

// memtableOf returns a State of one memtable that holds the values given to the key a, one
// sequence each, from 1 on. freed is set when it goes.
func memtableOf(freed *bool, values ...string) *tree.State {
	var entries [][]byte
	for _, v := range values {
		entries = append(entries, frame.AppendEntry(nil, base.KindPut, []byte("a"), []byte(v)))
	}
	return stateWith(func() { *freed = true }, 1, entries)
}

// stateWith returns a State of one memtable with entries, one sequence each, from first on. It
// calls free when that goes.
func stateWith(free func(), first uint64, entries [][]byte) *tree.State {
	const offset = 64
	records := max(16, len(entries))
	buf := append(make([]byte, offset), bytes.Join(entries, nil)...)
	m := tree.NewMemory(nil, buf, make([]byte, tree.IndexBytes(len(buf), records)), records, func(*tree.Memory) { free() })
	m.SetBase(first)
	at := offset
	for range entries {
		ent, n := frame.DecodeEntry(buf[at:])
		m.Insert(at, &ent, base.Hash(ent.Key))
		at += n
	}
	rs := tree.NewState([]*tree.Layer{{Mem: m}}, &manifest.Version{}, nil)
	m.Unref()
	return rs
}

func (v *View) mustGet(t *testing.T, want string) {
	t.Helper()
	if got, err := v.GetTo(nil, []byte("a"), nil); string(got) != want || err != nil {
		t.Errorf("a is %q, %v, want %q", got, err, want)
	}
}

// TestShow: what is in the State is seen once its sequence is shown.
func TestShow(t *testing.T) {
	var v View
	v.Init(100, func(int64) {})
	var freed bool
	v.Publish(memtableOf(&freed, "one", "two"))
	if _, err := v.GetTo(nil, []byte("a"), nil); !errors.Is(err, base.ErrNotFound) {
		t.Errorf("before anything is shown: %v", err)
	}
	v.Show(1)
	v.mustGet(t, "one")
	r, seq, _, _ := v.BeginSnapshot()
	v.Show(2)
	v.mustGet(t, "two")
	if has, err := v.Has(nil, []byte("b")); has || err != nil {
		t.Errorf("b: %v, %v", has, err)
	}
	if s := v.Epochs.Snapshots(nil); seq != 1 || len(s) != 1 || s[0] != 1 {
		t.Errorf("snapshot %d, of %v", seq, s)
	}
	v.EndSnapshot(r)
	v.Done(r)
	if s := v.Epochs.Snapshots(nil); len(s) != 0 {
		t.Errorf("a snapshot that ended is among %v", s)
	}
	v.Drop()
	if got, err := v.GetTo(nil, []byte("a"), make([]byte, 9)); !errors.Is(err, base.ErrClosed) || !freed || len(got) != 0 || cap(got) != 9 {
		t.Errorf("dropped: %d of %d bytes, %v, freed %v", len(got), cap(got), err, freed)
	}
}

// TestPublish: a State that was replaced stays as long as somebody reads it.
func TestPublish(t *testing.T) {
	var v View
	v.Init(100, func(int64) {})
	var first, second bool
	v.Publish(memtableOf(&first, "one"))
	v.Show(1)
	r := v.Reader()
	r.Slot.Enter()
	held := v.Reader()
	rs := v.Acquire(held.Slot)
	v.Publish(memtableOf(&second, "uno"))
	v.mustGet(t, "uno")
	v.Epochs.Collect()
	if first {
		t.Error("freed under a reader")
	}
	v.Leave(r)
	v.Epochs.Collect()
	if first {
		t.Error("freed though there is a reference")
	}
	rs.Unref()
	v.Done(held)
	if !first || second {
		t.Errorf("first freed %v, second %v", first, second)
	}
	var third bool
	v.Publish(memtableOf(&third, "ein"))
	if second {
		t.Error("freed by who published, who holds locks")
	}
	v.Epochs.Collect()
	if !second {
		t.Error("nobody needs it, and it is not freed")
	}
	v.Drop()
}

// TestShut waits for those who hold the store, and turns others away.
func TestShut(t *testing.T) {
	var v View
	v.Init(100, func(int64) {})
	var freed bool
	v.Publish(memtableOf(&freed, "one"))
	if err := v.Hold(); err != nil {
		t.Fatal(err)
	}
	shut := make(chan struct{})
	go func() { v.Shut(); close(shut) }()
	for !v.closed.Load() {
		time.Sleep(time.Millisecond)
	}
	if err := v.Hold(); !errors.Is(err, base.ErrClosed) || v.Held() != 1 {
		t.Errorf("hold of a store that is being closed: %v, %d hold it", err, v.Held())
	}
	if _, err := v.Has(nil, []byte("a")); !errors.Is(err, base.ErrClosed) {
		t.Errorf("read: %v", err)
	}
	select {
	case <-shut:
		t.Error("shut though it is held")
	case <-time.After(20 * time.Millisecond):
	}
	v.Release()
	<-shut
	v.Drop()
}

// TestShutBesideSnapshots: whoever begins a snapshot while the store is closed is turned away or waited for.
func TestShutBesideSnapshots(t *testing.T) {
	for range 50 {
		var v View
		v.Init(100, func(int64) {})
		var freed bool
		v.Publish(memtableOf(&freed, "one"))
		var inside atomic.Int64
		var begun, done sync.WaitGroup
		for range 2 {
			begun.Add(1)
			done.Go(func() {
				for i := 0; ; i++ {
					r, _, _, err := v.BeginSnapshot()
					if err != nil {
						if !errors.Is(err, base.ErrClosed) {
							t.Error(err)
						}
						return
					}
					inside.Add(1)
					if v.Held() == 0 {
						t.Error("held by nobody")
					}
					if i == 0 {
						begun.Done()
					}
					inside.Add(-1)
					v.EndSnapshot(r)
					v.Done(r)
				}
			})
		}
		begun.Wait()
		v.Shut()
		if n := inside.Load(); n != 0 {
			t.Errorf("%d are inside a store that is shut", n)
		}
		done.Wait()
		v.Drop()
	}
}

// TestForgottenSnapshot: the State in which a view that follows reads goes, once it has been replaced, with the last
// snapshot of it, also where nobody ends that and the collector finds it.
func TestForgottenSnapshot(t *testing.T) {
	for name, forget := range map[string]func(v *View, r *Reader){
		"ended":     func(v *View, r *Reader) { v.EndSnapshot(r); v.Done(r) },
		"forgotten": func(*View, *Reader) {},
	} {
		var v View
		v.Init(100, func(int64) {})
		v.Follow(func() error { return nil }, nil)
		var freed [2]bool
		v.Replace(memtableOf(&freed[0], "one"), 1)
		func() {
			r, _, rs, err := v.BeginSnapshot()
			if err != nil || rs != v.State() {
				t.Fatal(rs, err)
			}
			v.Replace(memtableOf(&freed[1], "one"), 1)
			if v.Epochs.Collect(); freed[0] {
				t.Errorf("%s: the State goes under a snapshot", name)
			}
			forget(&v, r)
		}()
		for v.Held() > 0 {
			runtime.GC()
			time.Sleep(time.Millisecond) // cleanups
		}
		if v.Epochs.Collect(); !freed[0] || freed[1] {
			t.Errorf("%s: gone are %v", name, freed)
		}
		v.Shut()
		if v.Drop(); !freed[1] {
			t.Errorf("%s: a State stays", name)
		}
	}
}

// TestForgottenIterators: of a State in which iterators stand the tables go with the last one that is closed, or with the snapshot
// that is forgotten; then the memtables stay.
func TestForgottenIterators(t *testing.T) {
	for name, end := range map[string]func(v *View, r *Reader, rs *tree.State){
		"ended":     func(v *View, r *Reader, rs *tree.State) { r.LetGo(rs); v.EndSnapshot(r); v.Done(r) },
		"forgotten": func(*View, *Reader, *tree.State) {},
	} {
		var v View
		v.Init(100, func(int64) {})
		var tableGone, memtableGone, next bool
		v.Publish(withTable(memtableOf(&memtableGone, "one"), &tableGone))
		v.Show(1)
		func() {
			r, _, _, err := v.BeginSnapshot()
			if err != nil {
				t.Fatal(err)
			}
			rs := v.State()
			for range 3 {
				r.Slot.Enter()
				r.Hold(rs)
				r.Slot.Exit()
			}
			v.Publish(memtableOf(&next, "one"))
			r.LetGo(rs)
			r.LetGo(rs)
			if v.Epochs.Collect(); tableGone || memtableGone {
				t.Errorf("%s: a State goes under an iterator", name)
			}
			end(&v, r, rs)
		}()
		for v.Held() > 0 {
			runtime.GC()
			time.Sleep(time.Millisecond) // cleanups
		}
		if v.Epochs.Collect(); !tableGone || memtableGone != (name == "ended") {
			t.Errorf("%s: gone are the table %v, the memtable %v", name, tableGone, memtableGone)
		}
		v.Shut()
		v.Drop()
	}
}

// withTable returns a State of the layers of rs, to which it drops the reference, above a table. gone is set when nobody refers to
// that.
func withTable(rs *tree.State, gone *bool) *tree.State {
	defer rs.Unref()
	meta := &base.TableMeta{Num: 1, Smallest: []byte("a"), Largest: []byte("b")}
	version := &manifest.Version{}
	version.Levels[1] = []*base.TableMeta{meta}
	return tree.NewState(rs.Layers, version, func(*base.TableMeta) *tree.Handle {
		return &tree.Handle{Meta: meta, OnUnused: func(*tree.Handle) { *gone = true }}
	})
}

func TestPin(t *testing.T) {
	var v View
	v.Init(100, func(int64) {})
	if !v.Pin(60) || v.Pin(41) || !v.Pin(40) {
		t.Error("100 bytes may be pinned")
	}
	v.Unpin(60)
	if !v.Pin(60) || v.Pin(1) {
		t.Error("what was given back may be pinned again")
	}
}

// TestSortedRowsAreOfTheState: sorted rows are there for snapshots that are not older, are
// counted, and go when the State is another.
func TestSortedRowsAreOfTheState(t *testing.T) {
	var v View
	bytes := int64(0)
	v.Init(1<<20, func(delta int64) { bytes += delta })
	var freed bool
	v.Publish(memtableOf(&freed, "one", "two"))
	v.Show(2)
	v.SortRows(func() error { return nil })
	sorted := v.Sorted(v.State(), 2)
	if sorted == nil || sorted.Len() != 1 || v.Sorted(v.State(), 1) != nil {
		t.Fatalf("sorted rows %v, of an older snapshot %v", sorted, v.Sorted(v.State(), 1))
	}
	const refs = 2 * 16 // of the memtable's order, with room for the one that nobody sees
	if bytes != 16+refs {
		t.Errorf("%d bytes are counted", bytes)
	}
	v.mayPin = 0
	v.SortRows(func() error { return nil }) // too many
	if v.Sorted(v.State(), 2) != sorted {
		t.Error("sorted rows were replaced by none")
	}
	v.Publish(memtableOf(&freed, "one", "two"))
	if v.Sorted(v.State(), 2) != nil || bytes > refs {
		t.Errorf("sorted rows %v, %d bytes are counted", v.Sorted(v.State(), 2), bytes)
	}
	v.Drop()
	v.Epochs.Drain()
	if bytes != 0 || !freed {
		t.Errorf("%d bytes are counted after the end", bytes)
	}
}
