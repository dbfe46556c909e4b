package itertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
)

// Run tests the iterators that makeIterator returns over the entries it is
// given, which are as Entries describes. The iterator must be unpositioned; it
// is closed at the end of each test.
func Run(t *testing.T, makeIterator func(entries []iterator.Entry) base.Iterator) {
	for _, n := range []int{0, 1, 2, 3, 7, 30, 200, 3000} {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			entries := Entries(r, n)
			t.Run(fmt.Sprintf("n=%d/seed=%d", n, seed), func(t *testing.T) {
				RunOn(t, r, entries, makeIterator)
			})
			if t.Failed() {
				return
			}
		}
	}
}

// RunOn is Run for one set of entries.
func RunOn(t *testing.T, r *rand.Rand, entries []iterator.Entry, makeIterator func([]iterator.Entry) base.Iterator) {
	w := &walk{t: t, r: r, entries: entries, it: makeIterator(entries), at: nowhere}
	w.unpositioned()
	w.wholeWay()
	w.seekAround(100)
	w.random(1500)
	if err := w.it.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	w = &walk{t: t, r: r, entries: entries, it: makeIterator(entries), at: nowhere}
	w.random(50)
	if err := w.it.Close(); err != nil {
		t.Fatalf("Close in the middle: %v", err)
	}
}

const nowhere = -1

// walk is an iterator beside where it should stand.
type walk struct {
	t       *testing.T
	r       *rand.Rand
	entries []iterator.Entry
	it      base.Iterator
	at      int
	history []string // the last operations
}

// expect checks that an operation returned ok and that the iterator stands on
// entry at, or nowhere if there is no such entry.
func (w *walk) expect(op string, ok bool, at int) {
	w.t.Helper()
	if at < 0 || at >= len(w.entries) {
		at = nowhere
	}
	if w.history = append(w.history, op); len(w.history) > 12 {
		w.history = w.history[1:]
	}
	w.at = at
	if ok != (at != nowhere) || w.it.Valid() != ok {
		w.fail("returned %v, Valid %v, should stand on %d", ok, w.it.Valid(), at)
	}
	if err := w.it.Err(); err != nil {
		w.fail("Err: %v", err)
	}
	if ok {
		w.current()
	}
}

func (w *walk) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%d entries, after %q: %s", len(w.entries), w.history, fmt.Sprintf(format, args...))
}

// current compares the entry, with its value every other time and in any order.
func (w *walk) current() {
	w.t.Helper()
	e := w.entries[w.at]
	key := w.it.Key()
	if w.r.IntN(2) == 0 {
		value, err := w.it.Value()
		if err != nil || !bytes.Equal(value, e.Value) {
			w.fail("value %.40q, %v; want %.40q", value, err, e.Value)
		}
	}
	if seq, kind := w.it.Seq(), w.it.Kind(); seq != e.Seq || kind != e.Kind {
		w.fail("stands on %q/%d/%v, want %q/%d/%v", w.it.Key(), seq, kind, e.Key, e.Seq, e.Kind)
	}
	if !bytes.Equal(key, e.Key) || !bytes.Equal(w.it.Key(), e.Key) {
		w.fail("key %q, then %q; want %q", key, w.it.Key(), e.Key)
	}
	if v, ok := w.it.(iterator.VersionTeller); ok && v.IsNewest() && w.at > 0 && bytes.Equal(e.Key, w.entries[w.at-1].Key) {
		w.fail("%q/%d is said to be the newest version, %d is newer", e.Key, e.Seq, w.entries[w.at-1].Seq)
	}
}

func (w *walk) lowerBound(key []byte) int {
	return sort.Search(len(w.entries), func(i int) bool { return bytes.Compare(w.entries[i].Key, key) >= 0 })
}

// next returns where Next leads, prev where Prev does.
func (w *walk) next() int {
	if w.at == nowhere {
		return nowhere
	}
	return w.at + 1
}

func (w *walk) prev() int {
	if w.at == nowhere {
		return nowhere
	}
	return w.at - 1
}

func (w *walk) nextKey() int {
	at := w.next()
	for at > 0 && at < len(w.entries) && bytes.Equal(w.entries[at].Key, w.entries[at-1].Key) {
		at++
	}
	return at
}

// unpositioned: a new iterator stands nowhere and steps lead nowhere.
func (w *walk) unpositioned() {
	w.t.Helper()
	if w.it.Valid() || w.it.Err() != nil {
		w.fail("new: Valid %v, Err %v", w.it.Valid(), w.it.Err())
	}
	w.expect("Next", w.it.Next(), nowhere)
	w.expect("Prev", w.it.Prev(), nowhere)
}

// wholeWay walks to both ends and checks that off is off, whichever way.
func (w *walk) wholeWay() {
	w.t.Helper()
	for w.expect("First", w.it.First(), 0); w.at != nowhere; {
		w.expect("Next", w.it.Next(), w.next())
	}
	w.off()
	for w.expect("Last", w.it.Last(), len(w.entries)-1); w.at != nowhere; {
		w.expect("Prev", w.it.Prev(), w.prev())
	}
	w.off()
	for w.expect("First", w.it.First(), 0); w.at != nowhere; {
		w.stepKey()
	}
	w.off()
}

func (w *walk) off() {
	w.t.Helper()
	w.expect("Next", w.it.Next(), nowhere)
	w.expect("Prev", w.it.Prev(), nowhere)
	w.expect("Prev", w.it.Prev(), nowhere)
	w.expect("Next", w.it.Next(), nowhere)
}

// seekAround seeks keys of the entries and beside them, and takes steps from there.
func (w *walk) seekAround(n int) {
	w.t.Helper()
	for range n {
		key := SeekKey(w.r, w.entries)
		w.seekGE(key)
		w.expect("Prev", w.it.Prev(), w.prev())
		w.seekGE(key)
		w.expect("Next", w.it.Next(), w.next())
		w.seekLT(key)
		w.expect("Next", w.it.Next(), w.next())
		w.seekLT(key)
		w.expect("Prev", w.it.Prev(), w.prev())
	}
}

func (w *walk) seekGE(key []byte) {
	w.t.Helper()
	w.expect(fmt.Sprintf("SeekGE %q", key), w.it.SeekGE(key), w.lowerBound(key))
}

func (w *walk) seekLT(key []byte) {
	w.t.Helper()
	w.expect(fmt.Sprintf("SeekLT %q", key), w.it.SeekLT(key), w.lowerBound(key)-1)
}

func (w *walk) stepKey() {
	w.t.Helper()
	if s, ok := w.it.(iterator.KeyStepper); ok {
		w.expect("NextKey", s.NextKey(), w.nextKey())
		return
	}
	w.expect("Next", w.it.Next(), w.next())
}

// random does n operations, in stretches of steps that turn round now and then.
func (w *walk) random(n int) {
	w.t.Helper()
	for i := 0; i < n; i++ {
		switch w.r.IntN(12) {
		case 0:
			w.expect("First", w.it.First(), 0)
		case 1:
			w.expect("Last", w.it.Last(), len(w.entries)-1)
		case 2, 3:
			w.seekGE(SeekKey(w.r, w.entries))
		case 4, 5:
			w.seekLT(SeekKey(w.r, w.entries))
		case 6, 7, 8:
			for range w.r.IntN(6) {
				w.expect("Next", w.it.Next(), w.next())
				i++
			}
		case 9:
			w.stepKey()
		default:
			for range w.r.IntN(6) {
				w.expect("Prev", w.it.Prev(), w.prev())
				i++
			}
		}
	}
}
