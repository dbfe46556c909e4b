package crashtest

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Fault is one operation that fails in a run of a workload.
type Fault struct {
	Kind   faultfs.Kind
	At     int64 // which one of its kind, from 1
	How    How
	Sticky bool // all later ones too
	// StayOpen has the workload leave the store open, so that it is the same store
	// that has to go on when the fault is over.
	StayOpen bool
}

// How says what happens to the operation.
type How uint8

// The ways to fail.
const (
	EIO        How = iota
	ENOSPC         // the disk is full
	ShortEIO       // half of the bytes, then EIO
	ShortSpace     // half of the bytes, then a full disk
	WholeEIO       // all of the bytes, but EIO
	LostPages      // sync: EIO, and no later sync covers the bytes (memfs.FailSyncs)
)

func (h How) String() string {
	return [...]string{"EIO", "ENOSPC", "short EIO", "short ENOSPC", "whole but EIO", "lost pages"}[h]
}

func (f Fault) String() string {
	s := fmt.Sprintf("%v %d: %v", f.Kind, f.At, f.How)
	if f.Sticky {
		s += ", sticky"
	}
	if f.StayOpen {
		s += ", store stays open"
	}
	return s
}

// space reports whether the fault is a full disk.
func (f Fault) space() bool { return f.How == ENOSPC || f.How == ShortSpace }

// benign reports whether the fault must not poison the store: a full disk where
// space is asked for.
func (f Fault) benign() bool {
	return f.space() && f.Kind&(faultfs.Create|faultfs.Preallocate|faultfs.Rename) != 0
}

func (f Fault) action() faultfs.Action {
	switch f.How {
	case ENOSPC:
		return faultfs.Fail(vfs.ErrNoSpace)
	case ShortEIO:
		return faultfs.Short(faultfs.Half, errDisk)
	case WholeEIO:
		return faultfs.Short(allBytes, errDisk)
	case ShortSpace:
		return faultfs.Short(faultfs.Half, vfs.ErrNoSpace)
	}
	return faultfs.Fail(errDisk)
}

// mostCuts bounds the power cuts after one fault.
const mostCuts = 8

// Kinds are the kinds of operation that are made to fail.
var Kinds = []faultfs.Kind{
	faultfs.Create, faultfs.Open, faultfs.Read, faultfs.Write, faultfs.Sync, faultfs.Preallocate, faultfs.Size,
	faultfs.Close, faultfs.Remove, faultfs.Rename, faultfs.Mkdir, faultfs.List, faultfs.Stat, faultfs.SyncDir, faultfs.Lock,
}

// Hows returns the ways an operation of a kind can fail.
func Hows(k faultfs.Kind) []How {
	switch k {
	case faultfs.Write:
		return []How{EIO, ENOSPC, ShortEIO, ShortSpace, WholeEIO}
	case faultfs.Read:
		return []How{EIO, ShortEIO}
	case faultfs.Sync:
		return []How{EIO, ENOSPC, LostPages}
	case faultfs.Create, faultfs.Preallocate, faultfs.Rename, faultfs.Mkdir, faultfs.SyncDir:
		return []How{EIO, ENOSPC}
	}
	return []How{EIO}
}

// CountOps executes the workload and returns how many operations of each of Kinds it has.
func CountOps(w *Workload, seed uint64) ([]int64, error) {
	r := NewRun(w, seed)
	handles := make([]*faultfs.Handle, len(Kinds))
	for i, k := range Kinds {
		handles[i] = r.Faults.Add(faultfs.Rule{Kinds: k})
	}
	r.Live = !w.Concurrent
	err := r.Do(w)
	counts := make([]int64, len(Kinds))
	for i, h := range handles {
		counts[i] = h.Seen()
	}
	return counts, err
}

// afflicted is a run with a fault.
type afflicted struct {
	*Run
	fault Fault
	wrong error
}

// RunFault executes the workload with a fault, and judges everything after it.
func RunFault(w *Workload, seed uint64, fault Fault) error {
	a := &afflicted{Run: NewRun(w, seed), fault: fault}
	a.OnError, a.Live, a.StayOpen = a.judgeError, !w.Concurrent, fault.StayOpen
	a.arm()
	err := a.Do(w)
	a.Faults.Heal()
	a.Disk.FailSyncs(nil)
	for _, step := range []func() error{a.finish, a.powerCut, a.reopen} {
		if err == nil && a.wrong == nil {
			err = step()
		}
	}
	if err = errors.Join(err, a.wrong); err != nil {
		return fmt.Errorf("workload %s, seed %d, %v: %w", w.Name, seed, fault, err)
	}
	return nil
}

func (a *afflicted) arm() {
	if a.fault.How != LostPages {
		a.Faults.Add(faultfs.Rule{Kinds: a.fault.Kind, At: a.fault.At, Sticky: a.fault.Sticky, Do: a.fault.action()})
		return
	}
	n := int64(0)
	a.Disk.FailSyncs(func(string) error {
		if n++; n == a.fault.At || a.fault.Sticky && n > a.fault.At {
			return errDisk
		}
		return nil
	})
}

// judgeError accepts the errors that the fault may cause. Calls are serialised.
func (a *afflicted) judgeError(call string, err error) {
	ok := errors.Is(err, base.ErrPoisoned) || errors.Is(err, base.ErrCommitUnknown)
	if a.fault.space() {
		ok = ok && !a.fault.benign() || errors.Is(err, base.ErrNoSpace)
	} else {
		ok = ok || errors.Is(err, syscall.EIO)
	}
	if (!ok || errors.Is(err, base.ErrCorrupt) || errors.Is(err, errWrong)) && a.wrong == nil {
		a.wrong = fmt.Errorf("%s: error of the wrong type: %w", call, err)
	}
}

// finish looks at the store that the workload left open, and closes it.
func (a *afflicted) finish() error {
	s := a.store
	if s == nil {
		return nil
	}
	a.StayOpen = false
	a.OnError = nil
	a.look()
	if a.err != nil {
		return fmt.Errorf("healed: %w", a.err)
	}
	err := a.goOn()
	poisoned := errors.Is(err, base.ErrPoisoned)
	if err != nil && (!poisoned || a.fault.benign() || a.fault.Kind&(faultfs.Read|faultfs.Open|faultfs.Size) != 0) {
		return fmt.Errorf("healed, but a commit fails: %w", err)
	}
	a.store = nil
	err = s.Close() // background work may have met the fault only after the commit
	if err != nil && !poisoned && (a.fault.benign() || !errors.Is(err, base.ErrPoisoned)) {
		return fmt.Errorf("healed, but Close fails: %w", err)
	}
	return nil
}

// goOn commits. A flush that failed is tried again only after a moment, and until
// then commits that need its memory may fail.
func (a *afflicted) goOn() (err error) {
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		c := a.History.Begin(true, a.At(), a.Put("healed", 3000))
		var seq uint64
		seq, err = a.store.Commit(c.Ops, true)
		a.History.End(c, seq, err, a.At())
		if err == nil || errors.Is(err, base.ErrPoisoned) {
			return err
		}
	}
	return err
}

// powerCut judges what a power cut leaves at the end.
func (a *afflicted) powerCut() error {
	a.History.order()
	at := a.At()
	for i, c := range []memfs.Choice{memfs.SyncedOnly(), memfs.Random(uint64(a.fault.At)), memfs.SyncedOnly().EntriesKept()} {
		image := a.Disk.Crash(c)
		image.StopJournal()
		x := &examination{h: a.History, m: Moment{At: at}, image: image, options: a.options, silent: true}
		if err := x.run(i == 0); err != nil {
			return fmt.Errorf("then a power cut, %v: %w", c, err)
		}
	}
	return nil
}

// reopen opens the store again. What it shows then has to be on the disk, not
// only in a page cache that a failed sync has made a liar.
func (a *afflicted) reopen() error {
	m := Moment{At: a.At(), Complete: true}
	s, err := Open(a.Disk, a.relaxed)
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	found, err := a.History.Judge(s, m)
	if err == nil {
		err = a.isDurable(found)
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = checkFiles(a.Disk)
	}
	if err != nil {
		return fmt.Errorf("reopened: %w", err)
	}
	return nil
}

// isDurable looks at what a power cut leaves of a store that is open again: all of it, also
// if of the names that were made and removed and are not durable yet one is lost.
func (a *afflicted) isDurable(found *Found) error {
	journal := a.Disk.Journal()
	at := journal.Len()
	choices := []memfs.Choice{memfs.SyncedOnly()}
	for i, op := range journal.Pending(at) {
		if op.Entry() && len(choices) < mostCuts {
			choices = append(choices, memfs.DropOne(i))
		}
	}
	for _, choice := range choices {
		image := journal.State(at, choice)
		image.StopJournal()
		s, err := Open(image, a.relaxed)
		if err != nil {
			return fmt.Errorf("power cut after it, %v: %w", choice, err)
		}
		pairs, err := s.Contents()
		if err == nil {
			err = diff(found.Pairs, pairs)
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("power cut after it, %v: %w", choice, err)
		}
	}
	return nil
}
