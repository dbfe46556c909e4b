package metamorphic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cairndb/cairn"
)

// tx is an open transaction and what it has to see.
type tx struct {
	a        *actor
	x        *cairn.Tx
	writable bool
	durable  bool
	stopped  bool  // by a fault: it is not used any more
	broken   bool  // one of its writes failed: it must not commit
	now      *node // its snapshot with its own writes on top
	from     int   // in a.writes
	log      []logged
	wrote    []span
	read     []span
	kept     []kept
	iters    []*walker
	views    int
}

// logged is a step of a transaction to be done again.
type logged struct {
	what  string
	again func(*replay) bool
}

// replay is a transaction done once more, upon another state.
type replay struct {
	now   *node
	views []*node
}

// kept is a slice that Get returned: it lasts until the transaction ends.
type kept struct {
	got  []byte
	want string
}

// walker is an iterator and where it has to stand.
type walker struct {
	it   *cairn.Iterator
	in   span
	view *node
	id   int
	at   *node
}

func (a *actor) begin(r *rand.Rand) {
	t := &tx{a: a, writable: r.IntN(3) > 0, now: a.root, durable: a.w.durability == cairn.Durable}
	x, err := a.w.db.Begin(t.writable)
	if err != nil {
		a.excuse("begin", err)
		return
	}
	if t.x = x; t.writable && r.IntN(5) == 0 {
		t.durable = !t.durable
		t.x.SetDurability(map[bool]cairn.Durability{true: cairn.Durable, false: cairn.Relaxed}[t.durable])
	}
	if len(a.txs) == 0 {
		a.writes = a.writes[:0]
	}
	t.from = len(a.writes)
	a.w.trace("%p: begun, writable %v", t, t.writable)
	a.txs = append(a.txs, t)
}

// step does something in the transaction.
func (t *tx) step(r *rand.Rand) {
	if t.stopped {
		return
	}
	switch p := r.IntN(100); {
	case p < 20:
		t.get(r)
	case p < 35:
		t.scan(r)
	case p < 40:
		if len(t.iters) < 5 {
			t.iterate(r)
		}
	case p < 75:
		if len(t.iters) > 0 {
			i := r.IntN(len(t.iters))
			for range 1 + r.IntN(10) {
				if !t.move(i, r) {
					break
				}
			}
		}
	case !t.writable:
		if err := t.x.Put(t.a.lend(0, "x"), nil); !errors.Is(err, cairn.ErrReadOnly) {
			failf("put into a read-only transaction: %v", err)
		}
	case p < 94:
		t.write(r)
	case p < 99:
		t.compare(r)
	default: // more than memory holds
		n := 1 + int(t.a.w.memory/int64(len(t.a.key(r))+10)/int64(1+r.IntN(30)))
		for range min(n, 6000) {
			if t.write(r); t.stopped {
				return
			}
		}
	}
	if len(t.kept) > 0 {
		t.checkKept(r.IntN(len(t.kept)))
	}
}

func (t *tx) checkKept(i int) {
	if k := t.kept[i]; string(k.got) != k.want {
		failf("a slice of Get became %s, was %s", short(string(k.got)), short(k.want))
	}
}

// did notes a step to be done again when the transaction is judged.
func (t *tx) did(what string, again func(*replay) bool) {
	t.a.w.trace("%p: %s", t, what)
	if t.writable {
		t.log = append(t.log, logged{what, again})
	}
}

// saw notes that the transaction depends on what is in s.
func (t *tx) saw(s span) {
	if t.writable {
		t.read = append(t.read, s)
	}
}

func (t *tx) get(r *rand.Rand) {
	k := t.a.key(r)
	t.saw(spanOf(k)) // even if it fails
	want, ok := t.now.get(k)
	if r.IntN(3) == 0 {
		has, err := t.x.Has(t.a.lend(0, k))
		if !t.a.has("has in a transaction", t.now, k, has, err) {
			return
		}
		t.did("has "+short(k), func(p *replay) bool { _, again := p.now.get(k); return again == ok })
	} else {
		v, err := t.x.Get(t.a.lend(0, k))
		if !t.a.read("get in a transaction", t.now, k, v, err) {
			return
		}
		if err == nil && len(t.kept) < 30 {
			t.kept = append(t.kept, kept{v, want})
		}
		t.did("get "+short(k), func(p *replay) bool { v, again := p.now.get(k); return again == ok && v == want })
	}
	t.a.reclaim()
}

// write writes without looking.
func (t *tx) write(r *rand.Rand) {
	k, v := t.a.key(r), t.a.value(r)
	var err error
	var apply func(*node) *node
	s := spanOf(k)
	switch p := r.IntN(100); {
	case p < 75:
		err = t.x.Put(t.a.lend(0, k), t.a.lend(1, v))
		apply = func(n *node) *node { return n.with(k, v) }
	case p < 97:
		err = t.x.Delete(t.a.lend(0, k))
		apply = func(n *node) *node { return n.without(k) }
	default:
		s = t.a.span(r)
		err = t.x.DeleteRange(t.a.lendRange(s))
		apply = func(n *node) *node { return n.withoutRange(s) }
	}
	t.a.reclaim()
	t.applied("write in a transaction", err, s, apply)
}

// applied judges a write.
func (t *tx) applied(what string, err error, s span, apply func(*node) *node) {
	if err != nil {
		t.a.excuse(what, err)
		t.stopped, t.broken = true, true
		return
	}
	t.now = apply(t.now)
	if !s.empty() { // else it is no write, and without one nothing is validated
		t.wrote = append(t.wrote, s)
	}
	t.did("write of "+short(s.low)+" to "+short(s.high), func(p *replay) bool { p.now = apply(p.now); return true })
}

// compare writes if what is there is as expected.
func (t *tx) compare(r *rand.Rand) {
	k, v := t.a.key(r), t.a.value(r)
	t.saw(spanOf(k)) // even if it fails
	have, ok := t.now.get(k)
	var old []byte
	if ok && r.IntN(2) == 0 || !ok && r.IntN(4) == 0 {
		old = append([]byte{}, have...)
	}
	absent := r.IntN(2) == 0
	would := func(n *node) bool {
		have, ok := n.get(k)
		return absent && !ok || !absent && ok == (old != nil) && string(old) == have
	}
	var done bool
	var err error
	if absent {
		done, err = t.x.PutIfAbsent(t.a.lend(0, k), t.a.lend(1, v))
	} else {
		done, err = t.x.CompareAndSwap(t.a.lend(0, k), old, t.a.lend(1, v))
	}
	t.a.reclaim()
	if want := would(t.now); err == nil && done != want {
		failf("compare and swap of %s: %v, want %v", short(k), done, want)
	}
	if err != nil { // reading, or writing
		t.a.excuse("compare and swap", err)
		t.stopped = true
		return
	}
	t.did("compare and swap of "+short(k), func(p *replay) bool { return would(p.now) == done })
	if done {
		t.applied("compare and swap", nil, spanOf(k), func(n *node) *node { return n.with(k, v) })
	}
}

// scan walks a range.
func (t *tx) scan(r *rand.Rand) {
	state, id := t.now, t.view()
	s, err := t.a.scan(t.x, state, r, t)
	if err != nil {
		t.a.excuse("scan in a transaction", err)
		t.stopped = true
	}
	t.saw(s)
	if err != nil {
		return
	}
	seen := state.within(s).digest()
	t.did("scan of "+short(s.low)+" to "+short(s.high), func(p *replay) bool { return p.views[id].within(s).digest() == seen })
}

// view makes what is there now something that later steps look at.
func (t *tx) view() (id int) {
	t.did("view", func(p *replay) bool { p.views = append(p.views, p.now); return true })
	t.views++
	return t.views - 1
}

// scan walks some range of a transaction and compares it with state. It returns the part
// that was walked.
func (a *actor) scan(x *cairn.Tx, state *node, r *rand.Rand, t *tx) (span, error) {
	limit := -1
	if r.IntN(3) > 0 {
		limit = r.IntN(50)
	}
	return a.walk(x, state, a.span(r), r.IntN(2) == 0, limit, func(row int) {
		if t != nil && t.writable && !t.stopped && row < 3 && r.IntN(8) == 0 {
			t.write(r) // which the loop does not see
		}
	})
}

// walk walks in, backward or not, as far as limit rows, -1 being all, and calls each.
func (a *actor) walk(x *cairn.Tx, state *node, in span, backward bool, limit int, each func(row int)) (span, error) {
	rows, at := 0, in.first(state)
	if backward {
		at = in.last(state)
	}
	if in.empty() {
		at = nil
	}
	walked := in
	step := func(k, v []byte, values bool) bool {
		if at == nil || string(k) != at.key || values && string(v) != at.value {
			want := "nothing"
			if at != nil {
				want = short(at.key) + "=" + short(at.value)
			}
			failf("scan (backward %v) of %s to %s, row %d: %s=%s, want %s", backward, short(in.low), short(in.high), rows, short(string(k)), short(string(v)), want)
		}
		if rows++; rows == limit {
			if walked = (span{low: in.low, high: at.key + "\x00"}); backward {
				walked = span{low: at.key, high: in.high, open: in.open}
			}
			return false
		}
		if each != nil {
			each(rows)
		}
		if backward {
			at = in.holding(state.lower(at.key))
		} else {
			at = in.holding(state.ceil(at.key + "\x00"))
		}
		return true
	}
	lent := a.lendRange(in)
	switch {
	case backward:
		for k, v := range x.ScanBackward(lent) {
			if a.reclaim(); !step(k, v, true) {
				return walked, nil
			}
		}
	case limit%2 == 0:
		for k := range x.Keys(lent) {
			if a.reclaim(); !step(k, nil, false) {
				return walked, nil
			}
		}
	default:
		for k, v := range x.Scan(lent) {
			if a.reclaim(); !step(k, v, true) {
				return walked, nil
			}
		}
	}
	a.reclaim()
	if err := x.Err(); err != nil {
		return walked, err
	}
	if at != nil {
		failf("scan (backward %v) of %s to %s ended after %d rows, %s was to come", backward, short(in.low), short(in.high), rows, short(at.key))
	}
	return walked, nil
}

// iterate makes an iterator.
func (t *tx) iterate(r *rand.Rand) {
	in := t.a.span(r)
	w := &walker{it: t.x.Iter(t.a.lendRange(in)), in: in, view: t.now, id: t.view()}
	t.a.reclaim()
	t.iters = append(t.iters, w)
}

// move moves an iterator, and reports whether it may go on.
func (t *tx) move(i int, r *rand.Rand) bool {
	w := t.iters[i]
	from := w.at
	target := t.a.key(r)
	var to func(view *node) *node
	var moved bool
	switch p := r.IntN(100); {
	case p < 8:
		to, moved = w.in.first, w.it.First()
	case p < 16:
		to, moved = w.in.last, w.it.Last()
	case p < 30:
		to = func(n *node) *node { return w.in.holding(n.ceil(max(target, w.in.low))) }
		moved = w.it.Seek(t.a.lend(0, target))
	case p < 44:
		to = func(n *node) *node {
			if !w.in.open && target >= w.in.high {
				return w.in.last(n)
			}
			return w.in.holding(n.lower(target))
		}
		moved = w.it.SeekLT(t.a.lend(0, target))
	case p < 70:
		to = from.then(func(n *node) *node { return w.in.holding(n.ceil(from.key + "\x00")) })
		moved = w.it.Next()
	case p < 96:
		to = from.then(func(n *node) *node { return w.in.holding(n.lower(from.key)) })
		moved = w.it.Prev()
	default:
		if err := w.it.Close(); err != nil {
			t.a.excuse("close of an iterator", err)
			t.stopped = true
		}
		t.iters = slices.Delete(t.iters, i, i+1)
		return false
	}
	t.a.reclaim()
	if w.in.empty() {
		to = func(*node) *node { return nil }
	}
	w.at = to(w.view)
	t.saw(w.in) // or a part of it, even if it fails
	if err := w.it.Err(); err != nil {
		t.a.excuse("iterator", err)
		if moved {
			failf("an iterator that has failed stands on %s", short(string(w.it.Key())))
		}
		t.iters = slices.Delete(t.iters, i, i+1)
		return false
	}
	if moved != (w.at != nil) || moved != w.it.Valid() || moved && string(w.it.Key()) != w.at.key {
		want := "nowhere"
		if w.at != nil {
			want = short(w.at.key)
		}
		failf("iterator over %s to %s: %v, at %s, want %s", short(w.in.low), short(w.in.high), moved, short(string(w.it.Key())), want)
	}
	if moved && r.IntN(2) == 0 {
		v, err := w.it.Value()
		if err != nil {
			t.a.excuse("value of an iterator", err)
			return false
		}
		if string(v) != w.at.value {
			failf("iterator at %s: value %s, want %s", short(w.at.key), short(string(v)), short(w.at.value))
		}
		at := w.at
		t.did("value at "+short(at.key), func(p *replay) bool { v, ok := p.views[w.id].get(at.key); return ok && v == at.value })
	}
	at := w.at
	t.did("move of an iterator", func(p *replay) bool {
		again := to(p.views[w.id])
		return (again == nil) == (at == nil) && (at == nil || again.key == at.key)
	})
	return true
}

// then returns move, or what stays nowhere where the iterator stands nowhere.
func (n *node) then(move func(*node) *node) func(*node) *node {
	if n == nil {
		return func(*node) *node { return nil }
	}
	return move
}

// end ends a transaction and judges it.
func (a *actor) end(i int, r *rand.Rand) {
	t := a.txs[i]
	a.txs = slices.Delete(a.txs, i, i+1)
	for i := range t.kept {
		t.checkKept(i)
	}
	if r.IntN(4) == 0 || !t.writable && r.IntN(2) == 0 {
		a.w.trace("%p: rolled back", t)
		if err := t.x.Rollback(); err != nil {
			a.excuse("rollback", err)
		}
		return
	}
	failed := t.x.Err()
	err := t.x.Commit()
	a.w.trace("%p: committed: %v", t, err)
	switch {
	case err == nil && (t.broken || failed != nil):
		failf("a transaction that had met an error (%v) committed", failed)
	case failed != nil && injected(failed) && a.w.faulted.Load(): // some time ago, perhaps
		a.w.excused.Add(1)
		return
	case !t.writable || len(t.wrote) == 0:
		if err != nil {
			a.excuse("commit of a transaction that wrote nothing", err)
		}
		return
	case errors.Is(err, cairn.ErrConflict):
		t.refused(err)
		return
	}
	again := &replay{now: a.root}
	if err == nil || errors.Is(err, cairn.ErrCommitUnknown) {
		for n, step := range t.log {
			if !step.again(again) {
				failf("a transaction committed that is not serializable: step %d of %d, %s, would have read something else", n, len(t.log), step.what)
			}
		}
	}
	a.writes = append(a.writes, t.wrote...)
	a.wrote("commit", err, again.now, t.durable)
}

// refused judges a conflict: something that the transaction read was written.
func (t *tx) refused(err error) {
	var c *cairn.ConflictError
	if !errors.As(err, &c) {
		failf("a conflict that is no ConflictError: %v", err)
	}
	t.a.w.conflicts.Add(1)
	if c.Wide {
		t.a.w.wide.Add(1)
		return
	}
	named := spanOf(string(c.Low))
	if c.High != nil {
		named = span{low: string(c.Low), high: string(c.High), open: len(c.High) == 0}
	}
	for _, w := range t.a.writes[t.from:] {
		if !meet(w, named) {
			continue
		}
		for _, s := range t.read {
			if meet(s, w) {
				return
			}
		}
	}
	text := ""
	for _, s := range t.read {
		text += fmt.Sprintf("\n  read %s to %s (open %v)", short(s.low), short(s.high), s.open)
	}
	for _, s := range t.a.writes[t.from:] {
		text += fmt.Sprintf("\n  written %s to %s (open %v)", short(s.low), short(s.high), s.open)
	}
	failf("a conflict on %s to %s, but nobody wrote what was read:%s", short(named.low), short(named.high), text)
}

// meet reports whether two ranges have a key in common, or could have.
func meet(a, b span) bool {
	return (a.open || b.low < a.high) && (b.open || a.low < b.high)
}
