package faultfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/cairndb/cairn/vfs"
)

// ErrPowerCut is what everything returns after Tear.
var ErrPowerCut = errors.New("faultfs: power is cut")

// errPretend: an operation whose success has a result cannot be pretended.
var errPretend = errors.New("faultfs: this operation cannot be pretended")

// Event is one operation of a trace.
type Event struct {
	Ordinal        int64 // counted from 1 over all kinds
	Kind           Kind  // one kind
	Name           string
	To             string // the new name of Rename and Link
	Offset, Length int64  // in bytes, of Read, Write and Preallocate
	Err            error  // what it returned; nil while it runs
}

// String renders the event on one line with the last elements of its paths, for
// comparison with an expected trace.
func (e Event) String() string {
	s := fmt.Sprintf("%s %s", e.Kind, path.Base(e.Name))
	if e.To != "" {
		s += " " + path.Base(e.To)
	}
	if e.Kind&(Read|Write|Preallocate) != 0 {
		s += fmt.Sprintf(" [%d,+%d)", e.Offset, e.Length)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// FS passes operations on to another FS, as its rules permit.
type FS struct {
	inner vfs.FS

	mu struct {
		sync.Mutex
		ordinal int64
		rules   []*Handle
		dead    bool
		tracing bool
		trace   []*Event
	}
}

var _ vfs.FS = (*FS)(nil)

// New wraps inner, without any rules.
func New(inner vfs.FS) *FS { return &FS{inner: inner} }

// Add puts a rule in force, behind those already there. It panics on a pattern that
// path.Match does not understand.
func (f *FS) Add(rule Rule) *Handle {
	if _, err := path.Match(rule.Name, ""); err != nil {
		panic(fmt.Sprintf("faultfs: pattern %q: %v", rule.Name, err))
	}
	h := &Handle{rule: rule}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.rules = append(f.mu.rules, h)
	return h
}

// Heal takes all rules out of force and ends a power cut.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.rules, f.mu.dead = nil, false
}

// Ordinal returns the number of operations so far.
func (f *FS) Ordinal() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.ordinal
}

// StartTrace begins a new trace.
func (f *FS) StartTrace() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.tracing, f.mu.trace = true, nil
}

// Trace returns the operations since StartTrace, in the order they began. Given
// kinds, it returns those alone.
func (f *FS) Trace(kinds ...Kind) []Event {
	want := Kind(0)
	for _, k := range kinds {
		want |= k
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var events []Event
	for _, e := range f.mu.trace {
		if want == 0 || want&e.Kind != 0 {
			events = append(events, *e)
		}
	}
	return slices.Clip(events)
}

// begin gives the operation its ordinal and finds out what is to happen to it.
func (f *FS) begin(e *Event) Action {
	a := f.judge(e)
	time.Sleep(a.delay)
	return a
}

// judge gives an operation its ordinal and finds the rule that hits it.
func (f *FS) judge(e *Event) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.ordinal++
	e.Ordinal = f.mu.ordinal
	if f.mu.tracing {
		f.mu.trace = append(f.mu.trace, e)
	}
	if f.mu.dead {
		return Fail(ErrPowerCut)
	}
	var hit *Handle
	for _, h := range f.mu.rules {
		if h.meet(e) && hit == nil {
			hit = h
		}
	}
	if hit == nil {
		return Action{}
	}
	hit.fired.Add(1)
	f.mu.dead = hit.rule.Do.kind == actTear
	return hit.rule.Do
}

// end notes the outcome and returns it.
func (f *FS) end(e *Event, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Err = err
	return err
}

func (e *Event) fail(err error) error {
	return &fs.PathError{Op: e.Kind.String(), Path: e.Name, Err: err}
}

// do runs an operation that returns an error only.
func (f *FS) do(e *Event, op func() error) error {
	a := f.begin(e)
	switch a.kind {
	case actPretend:
		return f.end(e, nil)
	case actDoneBut:
		return f.end(e, cmp.Or(op(), e.fail(a.err)))
	}
	return f.end(e, a.run(e, op))
}

// obtain runs an operation that has a result.
func (f *FS) obtain(e *Event, op func() error) error {
	a := f.begin(e)
	return f.end(e, a.run(e, op))
}

// run does op unless the action forbids it.
func (a Action) run(e *Event, op func() error) error {
	if a.kind != actNothing {
		return e.fail(a.err)
	}
	return op()
}

// FreeSpace implements vfs.SpaceTeller where the file system below does. No rule is asked.
func (f *FS) FreeSpace(dir string) (int64, error) {
	if t, ok := f.inner.(vfs.SpaceTeller); ok {
		return t.FreeSpace(dir)
	}
	return 0, errors.ErrUnsupported
}

// Create makes a new file; see vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	return f.open(&Event{Kind: Create, Name: name}, f.inner.Create)
}

// Open opens a file for reading; see vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) {
	return f.open(&Event{Kind: Open, Name: name}, f.inner.Open)
}

// OpenReadWrite opens a file for reading and writing; see vfs.FS.
func (f *FS) OpenReadWrite(name string) (vfs.File, error) {
	return f.open(&Event{Kind: Open, Name: name}, f.inner.OpenReadWrite)
}

func (f *FS) open(e *Event, how func(string) (vfs.File, error)) (vfs.File, error) {
	a := f.begin(e)
	if a.kind != actDoneBut && a.kind != actNothing {
		return nil, f.end(e, e.fail(a.err))
	}
	inner, err := how(e.Name)
	if err == nil && a.kind == actDoneBut {
		inner.Close()
		err = e.fail(a.err)
	}
	if f.end(e, err) != nil {
		return nil, err
	}
	return &file{fs: f, inner: inner, name: e.Name}, nil
}

// Remove deletes a file or empty directory; see vfs.FS.
func (f *FS) Remove(name string) error {
	return f.do(&Event{Kind: Remove, Name: name}, func() error { return f.inner.Remove(name) })
}

// Rename replaces newname; see vfs.FS.
func (f *FS) Rename(oldname, newname string) error {
	e := &Event{Kind: Rename, Name: oldname, To: newname}
	return f.do(e, func() error { return f.inner.Rename(oldname, newname) })
}

// Link makes another name; see vfs.FS.
func (f *FS) Link(oldname, newname string) error {
	e := &Event{Kind: Link, Name: oldname, To: newname}
	return f.do(e, func() error { return f.inner.Link(oldname, newname) })
}

// MkdirAll makes a directory; see vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	return f.do(&Event{Kind: Mkdir, Name: dir}, func() error { return f.inner.MkdirAll(dir) })
}

// List returns a directory's names; see vfs.FS.
func (f *FS) List(dir string) (names []string, err error) {
	err = f.obtain(&Event{Kind: List, Name: dir}, func() error {
		names, err = f.inner.List(dir)
		return err
	})
	return names, err
}

// Stat describes a file or directory; see vfs.FS.
func (f *FS) Stat(name string) (info vfs.FileInfo, err error) {
	err = f.obtain(&Event{Kind: Stat, Name: name}, func() error {
		info, err = f.inner.Stat(name)
		return err
	})
	return info, err
}

// SyncDir makes a directory's entries durable; see vfs.FS.
func (f *FS) SyncDir(dir string) error {
	return f.do(&Event{Kind: SyncDir, Name: dir}, func() error { return f.inner.SyncDir(dir) })
}

// Lock takes a lock file; see vfs.FS.
func (f *FS) Lock(name string, shared bool) (held io.Closer, err error) {
	err = f.obtain(&Event{Kind: Lock, Name: name}, func() error {
		inner, err := f.inner.Lock(name, shared)
		if err == nil {
			held = &closer{fs: f, inner: inner, name: name}
			if s, ok := inner.(vfs.Sharer); ok {
				held = &sharer{held, s}
			}
		}
		return err
	})
	return held, err
}

// sharer is a lock whose holder can share memory. No rule is asked for that.
type sharer struct {
	io.Closer
	vfs.Sharer
}

// Watch implements vfs.Watcher where the file system below does. No rule is asked.
func (f *FS) Watch(name string) (vfs.Watch, error) {
	if w, ok := f.inner.(vfs.Watcher); ok {
		return w.Watch(name)
	}
	return nil, errors.ErrUnsupported
}
