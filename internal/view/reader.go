package view

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/internal/tree"
)

// Reader is what a goroutine needs to read: an epoch slot, and room for a key.
// Readers are pooled.
type Reader struct {
	key  []byte
	Slot *epoch.Slot
	held *held
	Kept any // what whoever had it before has left with it, for whoever knows what that is
}

// held is what goes back when the collector finds a reader. It does not lead to that, nor to who has it.
type held struct {
	of    *tree.State // in which the snapshot is read, with a reference, if the view follows; else nil
	iters []standing
}

// standing is a State in which so many iterators stand. They share one reference.
type standing struct {
	rs *tree.State
	n  int
}

// made are the readers that there are, for who looks which of them the collector has found.
type made struct {
	epochs *epoch.Domain
	mu     sync.Mutex
	all    map[weak.Pointer[Reader]]lent
}

// lent is what a reader has that goes back.
type lent struct {
	slot *epoch.Slot
	held *held
}

func (m *made) newReader() *Reader {
	slot, h := m.epochs.Register(), new(held)
	r := &Reader{Slot: slot, held: h}
	w := weak.Make(r)
	m.mu.Lock()
	m.all[w] = lent{slot, h}
	m.mu.Unlock()
	// The pool drops readers at will, and the collector finds those of snapshots that were never ended: their slots go
	// back when that happens. Until then Shut waits, and Drop, which comes after, runs what was put off. Shut looks for them
	// itself: it may have been called in a finalizer, or a cleanup, that this one would have to wait for.
	runtime.AddCleanup(r, m.giveBack, w)
	return r
}

// giveBack gives back what a reader had that the collector has found, once.
func (m *made) giveBack(w weak.Pointer[Reader]) {
	m.mu.Lock()
	l, first := m.all[w]
	delete(m.all, w)
	m.mu.Unlock()
	if !first {
		return
	}
	if l.held.of != nil {
		m.epochs.Later(l.held.of.Unref)
	}
	for _, s := range l.held.iters {
		m.epochs.Later(s.rs.Forget)
	}
	l.slot.Release()
}

// collected gives back what all readers had that the collector has found.
func (m *made) collected() {
	var found []weak.Pointer[Reader]
	m.mu.Lock()
	for w := range m.all {
		if w.Value() == nil {
			found = append(found, w)
		}
	}
	m.mu.Unlock()
	for _, w := range found {
		m.giveBack(w)
	}
}

// Hold takes a reference of rs for an iterator of the snapshot that r has begun. The caller is inside the epoch.
func (r *Reader) Hold(rs *tree.State) {
	h := r.held
	for i := range h.iters {
		if h.iters[i].rs == rs {
			h.iters[i].n++
			return
		}
	}
	rs.Ref()
	h.iters = append(h.iters, standing{rs, 1})
}

// LetGo drops what Hold took.
func (r *Reader) LetGo(rs *tree.State) {
	h := r.held
	i := slices.IndexFunc(h.iters, func(s standing) bool { return s.rs == rs })
	if h.iters[i].n--; h.iters[i].n == 0 {
		h.iters = slices.Delete(h.iters, i, i+1)
		rs.Unref()
	}
}

// internal joins a bucket's prefix and a key.
func (r *Reader) internal(bucket, key []byte) []byte {
	r.key = append(append(r.key[:0], bucket...), key...)
	return r.key
}

// Reader returns a reader, outside of the epoch, that the caller gives back with Done.
func (v *View) Reader() *Reader { return v.readers.Get().(*Reader) }

// Done gives back what Reader returned, outside of the epoch again.
func (v *View) Done(r *Reader) { v.readers.Put(r) }

// enter begins a one-shot read. Everything reachable stays in memory until Leave.
func (v *View) enter() (*Reader, error) {
	r := v.Reader()
	r.Slot.Enter()
	err := error(nil)
	if v.closed.Load() {
		err = base.ErrClosed
	} else if v.catchUp != nil {
		err = v.catchUp()
	}
	if err != nil {
		v.Leave(r)
		return nil, err
	}
	return r, nil
}

// Leave ends a read: r leaves the epoch, and is given back.
func (v *View) Leave(r *Reader) {
	r.Slot.Exit()
	v.Done(r)
}

// BeginSnapshot returns a reader whose slot holds a snapshot of everything visible,
// and the snapshot's sequence. Close waits until EndSnapshot ends it; Done gives the reader back. If the view
// follows there is a State, too, in which the snapshot is read, and which stays until it ends.
func (v *View) BeginSnapshot() (r *Reader, seq uint64, of *tree.State, err error) {
	if v.catchUp != nil {
		return v.followedSnapshot()
	}
	r = v.Reader()
	seq = r.Slot.BeginSnapshot(&v.visible)
	if v.closed.Load() { // after the snapshot is seen: either Shut waits for it, or it is seen here that it does not
		v.EndSnapshot(r)
		v.Done(r)
		return nil, 0, nil, base.ErrClosed
	}
	return r, seq, nil, nil
}

func (v *View) followedSnapshot() (r *Reader, seq uint64, of *tree.State, err error) {
	if err := v.Hold(); err != nil {
		return nil, 0, nil, err
	}
	defer v.Release()
	if err := v.catchUp(); err != nil {
		return nil, 0, nil, err
	}
	r = v.Reader()
	v.pair.Lock()
	defer v.pair.Unlock()
	seq = r.Slot.BeginSnapshot(&v.visible)
	r.held.of = v.Acquire(r.Slot)
	return r, seq, r.held.of, nil
}

// EndSnapshot ends the snapshot that BeginSnapshot began. The reader is to be given back with Done.
func (v *View) EndSnapshot(r *Reader) {
	if h := r.held; h.of != nil {
		h.of.Unref()
		h.of = nil
	}
	r.Slot.ClearSnapshot()
	v.released()
}

// GetTo appends the newest committed value of key to dst[:0].
func (v *View) GetTo(bucket, key, dst []byte) ([]byte, error) {
	r, err := v.enter()
	if err != nil {
		return dst[:0], err
	}
	defer v.Leave(r)
	var f tree.Found
	if err := v.latest(&f, r.internal(bucket, key)); err != nil {
		return dst[:0], err
	}
	if !f.Live() {
		return dst[:0], base.ErrNotFound
	}
	if dst == nil {
		dst = make([]byte, 0, len(f.Value))
	}
	return append(dst[:0], f.Value...), nil
}

// Has reports whether key has a value.
func (v *View) Has(bucket, key []byte) (bool, error) {
	r, err := v.enter()
	if err != nil {
		return false, err
	}
	defer v.Leave(r)
	var f tree.Found
	f.KeyOnly = true
	err = v.latest(&f, r.internal(bucket, key))
	return f.Live(), err
}

// latest sets f, which is zero but for KeyOnly, to the newest committed version of key. The caller is inside the
// epoch. The state is loaded before the visible sequence (E7): compaction drops
// only what a newer visible version hides, so a state holds every version that a
// sequence loaded after it asks for.
func (v *View) latest(f *tree.Found, key []byte) error {
	rs, seq := v.now()
	if rs == nil { // the store was closed between enter and here
		return base.ErrClosed
	}
	return rs.Lookup(f, key, base.Hash(key), base.Visibility{Snapshot: seq})
}
