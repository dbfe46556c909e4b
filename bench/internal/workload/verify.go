package workload

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// WrongAnswer is a read that did not give what was written. It voids the cell.
type WrongAnswer struct{ What string }

func (w *WrongAnswer) Error() string { return w.What }

func wrong(format string, args ...any) error {
	return &WrongAnswer{fmt.Sprintf(format, args...)}
}

// expectation knows what a store must hold: ids 0 to n-1, all at one version.
type expectation struct {
	source  *data.Source
	keys    data.Keys
	n       int
	size    int
	version uint64
	same    []byte // the value of every id and version, as one article did it; nil: they differ
}

// expect makes the data of a cell.
func expect(p Params) *expectation {
	source, keys := dataOf(p, p.N)
	return &expectation{source: source, keys: keys, n: p.N, size: p.ValueBytes}
}

// dataOf makes the values and at least n keys.
func dataOf(p Params, n int) (*data.Source, data.Keys) {
	source, records := lastValues.of(p)
	if records != nil {
		if keys, own := records.KeySet(); own {
			return source, keys
		}
	}
	return source, data.NewSizedKeys(n, p.keyBytes())
}

func (e *expectation) value(id uint64) []byte {
	if e.same != nil {
		return e.same
	}
	return e.source.Value(id, e.version, e.size)
}

// compare returns a *WrongAnswer unless got is the value of id.
func (e *expectation) compare(id uint64, got []byte) error {
	if bytes.Equal(got, e.value(id)) {
		return nil
	}
	for old := e.version; old > 0; old-- {
		if bytes.Equal(got, e.source.Value(id, old-1, e.size)) {
			return wrong("key %d: a stale value, version %d in place of %d", id, old-1, e.version)
		}
	}
	return wrong("key %d: a wrong value of %d bytes, want %d", id, len(got), e.size)
}

// lookup gets keys that were written, and sees that each has its value handed over. One
// goroutine uses it; what it gives to Get is made once, not with every get.
type lookup struct {
	compare func(id uint64, got []byte) error
	see     func(got []byte) error
	id      uint64 // of the key under way
	handed  bool   // its value was
}

func newLookup(compare func(id uint64, got []byte) error) *lookup {
	l := &lookup{compare: compare}
	l.see = func(got []byte) error { l.handed = true; return l.compare(l.id, got) }
	return l
}

// get reads the key of id.
func (l *lookup) get(r engine.Reader, id uint64, key []byte) error {
	l.id, l.handed = id, false
	if err := r.Get(key, l.see); err != nil {
		return notLost(id, err)
	}
	return l.answered()
}

// answered fails if a get ended well and handed nothing over.
func (l *lookup) answered() error {
	if l.handed {
		return nil
	}
	return wrong("key %d: no value was handed over", l.id)
}

// getAll reads every key in the given order and compares every value.
func (e *expectation) getAll(r engine.Reader, order []int32) error {
	l := &lookup{}
	l.see = func(got []byte) error { l.handed = true; return e.compare(l.id, got) } // a call less, for it is timed most
	for _, i := range order {
		if err := l.get(r, uint64(i), e.keys.At(int(i))); err != nil {
			return err
		}
	}
	return nil
}

// notLost turns ErrNotFound for a key that was written into a wrong answer.
func notLost(id uint64, err error) error {
	if errors.Is(err, engine.ErrNotFound) {
		return wrong("key %d: lost, it was written and is not found", id)
	}
	return err
}

// survived opens a closed store once more, reads every key and walks all pairs. It is for
// after Recorder.End: neither timed nor in what the process has used.
func (e *expectation) survived(d engine.Driver, dir string, p Params) error {
	if !d.Info.Can(engine.CanDisk) {
		return nil
	}
	store, err := d.Open(dir, p.options())
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	if err := e.all(d.Info, store); err != nil {
		return fmt.Errorf("after close and open: %w", err)
	}
	return store.Close()
}

// all reads every key and walks all pairs.
func (e *expectation) all(info engine.Info, store engine.Store) error {
	if err := e.getAll(store, data.Sequence(e.n)); err != nil {
		return err
	}
	return e.exact(info, store, e.compare)
}

// exact walks all pairs of a store that can show them: every key once, its value as compare
// wants it, and no other. Gets would not find what nobody has put.
func (e *expectation) exact(info engine.Info, store engine.Store, compare func(id uint64, got []byte) error) error {
	walker, ok := store.(engine.PairWalker)
	if !ok {
		return nil
	}
	w := e.newWalk(info.Can(engine.CanOrder))
	return w.end(walker.Pairs(func(key, value []byte) error {
		id, err := w.step(key)
		if err != nil {
			return err
		}
		return compare(id, value)
	}))
}

// empty walks all pairs of a store that can show them: there is none.
func (e *expectation) empty(info engine.Info, store engine.Store) error {
	none := *e
	none.n = 0
	return none.exact(info, store, none.compare)
}

// noneLeft fails unless every key is absent.
func (e *expectation) noneLeft(r engine.Reader) error {
	see := func([]byte) error { return nil }
	for i := range e.n {
		err := r.Get(e.keys.At(i), see)
		if err == nil {
			return wrong("key %d: still there after its delete", i)
		}
		if !errors.Is(err, engine.ErrNotFound) {
			return err
		}
	}
	return nil
}

// walk checks an iteration: every key once, in order if the engine has one.
type walk struct {
	*expectation
	ordered bool
	seen    []uint64 // bitmap
	count   int
}

func (e *expectation) newWalk(ordered bool) *walk {
	return &walk{expectation: e, ordered: ordered, seen: make([]uint64, e.n/64+1)}
}

func (w *walk) key(key []byte) error {
	_, err := w.step(key)
	return err
}

func (w *walk) pair(key, value []byte) error {
	id, err := w.step(key)
	if err != nil {
		return err
	}
	return w.compare(id, value)
}

func (w *walk) step(key []byte) (uint64, error) {
	id, ok := w.keys.ID(key)
	if !ok || id >= uint64(w.n) {
		return 0, wrong("iteration: %q is no key of this set", key)
	}
	if w.ordered && id != uint64(w.count) {
		return 0, wrong("iteration: key %d in place %d", id, w.count)
	}
	if w.seen[id/64]&(1<<(id%64)) != 0 {
		return 0, wrong("iteration: key %d twice", id)
	}
	w.seen[id/64] |= 1 << (id % 64)
	w.count++
	return id, nil
}

func (w *walk) end(err error) error {
	if err == nil && w.count != w.n {
		return wrong("iteration: %d keys of %d", w.count, w.n)
	}
	return err
}
