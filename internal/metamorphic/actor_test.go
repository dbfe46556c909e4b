package metamorphic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// mismatch is what an actor panics with when the store has not done what it should.
type mismatch string

func failf(format string, args ...any) { panic(mismatch(fmt.Sprintf(format, args...))) }

// actor calls the store, on keys of its own, and knows what each call has to return.
type actor struct {
	w       *world
	prefix  string
	whole   span  // the keys of its own
	root    *node // what is committed
	history []state
	began   int64        // when the call began, by the world's clock
	acked   atomic.Int64 // index in history of the last state: what survives a kill
	durable atomic.Int64 // index in history of the last state that survives a power cut
	unknown []*node      // what the next Open may find in place of root
	failed  []attempt    // commits that failed, and of which nothing is to be seen but in what was left while they were under way
	txs     []*tx
	writes  []span // by its own commits since it last had no transaction open
	next    int    // key, where they come in order
	calls   int64
	buf     [2][]byte
}

// state is what a commit made, and when it began and ended, or began at the latest and ended at the
// earliest, by the world's clock.
type state struct {
	*node
	began, ended int64
}

// attempt is a commit that failed: what it would have made of the state of that index in history.
type attempt struct {
	state
	of int
}

// committed notes a commit that was acknowledged.
func (a *actor) committed(root *node, durable bool) {
	a.root = root
	a.history = append(a.history, state{root, a.began, a.w.clock.Add(1)})
	a.acked.Store(int64(len(a.history) - 1))
	if durable {
		a.settled()
	}
}

// restart begins a history with what an Open has found.
func (a *actor) restart(root *node) {
	a.root, a.history, a.unknown, a.failed, a.writes = root, []state{{node: root}}, nil, nil, nil
	a.acked.Store(0)
	a.durable.Store(0)
}

// settled notes that all that is committed survives a power cut.
func (a *actor) settled() { a.durable.Store(int64(len(a.history) - 1)) }

// trace says what is done, where a plan is so short that all of it can be read.
func (w *world) trace(format string, args ...any) {
	if w.traced != nil {
		w.traced(format, args...)
	}
}

// wrote judges a write, which makes the state to next.
func (a *actor) wrote(what string, err error, next *node, durable bool) bool {
	a.w.trace("%s of %q: %v; %d rows", what, a.prefix, err, next.len())
	switch {
	case err == nil:
		a.committed(next, durable)
		return true
	case errors.Is(err, cairn.ErrCommitUnknown):
		if len(a.unknown) > 0 {
			failf("%s: %v after another commit had been left unknown", what, err)
		}
		a.unknown = append(a.unknown, next)
	default:
		a.failed = append(a.failed, attempt{state{next, a.began, a.w.clock.Add(1)}, len(a.history) - 1})
	}
	a.excuse(what, err)
	return false
}

// excuse judges an error: the disk has to be to blame.
func (a *actor) excuse(what string, err error) {
	sticks := errors.Is(err, cairn.ErrPoisoned) || errors.Is(err, cairn.ErrCommitUnknown)
	if sticks && a.w.faulted.Load() || a.w.faulty.Load() && (sticks || injected(err)) {
		a.w.excused.Add(1)
		return
	}
	failf("%s: %v", what, err)
}

// injected reports whether err is of a fault of the disk.
func injected(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, cairn.ErrNoSpace) || vfs.IsNoSpace(err)
}

// lend returns s as bytes that become others with the next call of lend for that place:
// whoever keeps what was passed to it is found out.
func (a *actor) lend(place int, s string) []byte {
	if place == 0 && s != "" {
		a.calls++
	}
	b := a.buf[place]
	for i := range b {
		b[i] = 0xee
	}
	b = append(b[:0], s...)
	a.buf[place] = b
	return b
}

func (a *actor) lendRange(s span) cairn.Range {
	r := cairn.Range{Low: a.lend(0, s.low), High: a.lend(1, s.high)}
	if s.low == "" {
		r.Low = nil
	}
	if s.open {
		r.High = nil
	}
	return r
}

// reclaim spoils what was lent.
func (a *actor) reclaim() {
	a.lend(0, "")
	a.lend(1, "")
}

func short(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%q...%q (%d bytes)", s[:25], s[len(s)-15:], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// key draws a key.
func (a *actor) key(r *rand.Rand) string {
	n := func(of int) int { // small numbers more often
		if r.IntN(3) == 0 {
			return r.IntN(1 + r.IntN(of))
		}
		return r.IntN(of)
	}
	switch a.w.keys {
	case keysShort:
		const alphabet = "\x00\x01a\xfe\xff"
		k := []byte(a.prefix)
		for range 1 + r.IntN(5) {
			k = append(k, alphabet[r.IntN(len(alphabet))])
		}
		return string(k)
	case keysAlike:
		return fmt.Sprintf("%s%s%d", a.prefix, strings.Repeat("p", 300), n(500))
	case keysInOrder:
		if r.IntN(2) == 0 {
			a.next++
			return fmt.Sprintf("%s%08d", a.prefix, a.next)
		}
		return fmt.Sprintf("%s%08d", a.prefix, n(a.next+10))
	case keysLong:
		return fmt.Sprintf("%s%s%d", a.prefix, strings.Repeat("long", 200+r.IntN(3)*4000), n(15))
	case keysHot:
		return fmt.Sprintf("%s%02d", a.prefix, n(20))
	}
	return fmt.Sprintf("%sk%05d", a.prefix, n(3000))
}

// value draws a value.
func (a *actor) value(r *rand.Rand) string {
	n := r.IntN(40)
	switch {
	case a.w.values == valuesLarge && r.IntN(100) == 0:
		n = r.IntN(1 << 20)
	case a.w.values >= valuesMixed && r.IntN(20) == 0:
		n = r.IntN(20 << 10)
	case a.w.values >= valuesSome && r.IntN(2) == 0:
		n = r.IntN(1000)
	}
	if n < 8 {
		return strings.Repeat(string(rune('a'+r.IntN(26))), n)
	}
	b := make([]byte, n+8)
	x := r.Uint64()
	step := uint64(r.IntN(2)) * 0x9E3779B97F4A7C15 // 0: it compresses
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], x^x>>29)
		x += step
	}
	return string(b[:n])
}

// span draws a range; some are empty.
func (a *actor) span(r *rand.Rand) span {
	s := a.whole
	if r.IntN(4) > 0 {
		s.low = a.key(r)
	}
	if r.IntN(4) > 0 {
		s.high, s.open = a.key(r), false
	}
	if r.IntN(6) > 0 && !s.open && s.high < s.low {
		s.low, s.high = s.high, s.low
	}
	if r.IntN(3) == 0 && !s.open { // short ones
		if n := a.root.ceil(s.low); n != nil && a.whole.holding(n) != nil {
			s.low, s.high = n.key, n.key+"\x00\xff"
		}
	}
	return s
}

// step does what a number says.
func (a *actor) step(seed uint64) {
	a.began = a.w.clock.Add(1)
	r := rand.New(rand.NewPCG(seed, 1))
	switch p := r.IntN(1000); {
	case p < 180:
		k, v := a.key(r), a.value(r)
		err := a.w.db.Put(a.lend(0, k), a.lend(1, v))
		a.reclaim()
		a.note(spanOf(k))
		a.wrote("put", err, a.root.with(k, v), a.w.durability == cairn.Durable)
	case p < 240:
		k := a.key(r)
		err := a.w.db.Delete(a.lend(0, k))
		a.reclaim()
		a.note(spanOf(k))
		a.wrote("delete", err, a.root.without(k), a.w.durability == cairn.Durable)
	case p < 360:
		a.get(r)
	case p < 400:
		a.batch(r)
	case p < 450:
		a.view(a.w.db, r)
	case p < 465:
		if a.w.reader != nil {
			a.view(a.w.reader, r)
		}
	case p < 490:
		a.update(r)
	case p < 540:
		if len(a.txs) < a.w.most {
			a.begin(r)
		}
	case p < 590:
		if len(a.txs) > 0 {
			a.end(r.IntN(len(a.txs)), r)
		}
	case p < 990:
		if len(a.txs) > 0 {
			a.txs[r.IntN(len(a.txs))].step(r)
		}
	case p < 992:
		if err := a.w.db.Sync(); err != nil {
			a.excuse("sync", err)
		} else {
			a.settled()
		}
	case p < 993:
		if err := a.w.db.Compact(nil, a.lendRange(a.span(r))); err != nil { //nolint:staticcheck // nil is allowed
			a.excuse("compact", err)
		}
		a.reclaim()
	case p < 994:
		if report, err := a.w.db.Verify(nil); err != nil { //nolint:staticcheck // nil is allowed
			a.excuse("verify", err)
		} else if len(report.Problems) > 0 {
			failf("verify found %v and returned nil", report.Problems)
		}
	case p < 999:
		a.stats()
	default:
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond / 4)
	}
}

// replayed is what memtables may take beyond Memory: the log that Open replays is outside it.
const replayed = 8 << 20

// stats looks for what cannot be.
func (a *actor) stats() {
	s := a.w.db.Stats()
	if s.DiskBytes < 0 || s.LogBytes < 0 || s.LogBytes > s.DiskBytes || s.MemoryUsed < 0 || s.Memtables < 0 || s.Pages < 0 ||
		s.PinnedBytes < 0 || s.CompactionDebt < 0 || s.OpenTransactions < int64(len(a.txs)) || s.MemoryLimit != a.w.memory || s.Memtables > s.MemoryLimit+replayed {
		failf("stats: %+v", s)
	}
}

func spanOf(key string) span { return span{low: key, high: key + "\x00"} }

// note remembers what a commit is about to write, or may have.
func (a *actor) note(s span) {
	a.w.trace("writing %s to %s", short(s.low), short(s.high))
	if len(a.txs) > 0 {
		a.writes = append(a.writes, s)
	} else {
		a.writes = a.writes[:0]
	}
}

// get reads one key by one call.
func (a *actor) get(r *rand.Rand) {
	k := a.key(r)
	switch r.IntN(3) {
	case 0:
		v, err := a.w.db.Get(a.lend(0, k))
		a.read("get", a.root, k, v, err)
		clear(v) // a copy: nobody minds
	case 1:
		into := make([]byte, r.IntN(100))
		v, err := a.w.db.GetTo(a.lend(0, k), into)
		a.read("getto", a.root, k, v, err)
		clear(v)
	default:
		has, err := a.w.db.Has(a.lend(0, k))
		a.has("has", a.root, k, has, err)
	}
	a.reclaim()
}

// read judges what a read of a key returned, and reports whether it had to succeed.
func (a *actor) read(what string, state *node, k string, v []byte, err error) bool {
	want, ok := state.get(k)
	switch {
	case err == nil && ok && string(v) == want && v != nil:
	case errors.Is(err, cairn.ErrNotFound) && !ok:
	case err != nil && !errors.Is(err, cairn.ErrNotFound):
		a.excuse(what, err)
		return false
	default:
		failf("%s %s: %s, %v; want %s, %v", what, short(k), short(string(v)), err, short(want), ok)
	}
	return true
}

func (a *actor) has(what string, state *node, k string, has bool, err error) bool {
	if err != nil {
		a.excuse(what, err)
		return false
	}
	if _, ok := state.get(k); ok != has {
		failf("%s %s: %v, want %v", what, short(k), has, ok)
	}
	return true
}

// batch writes some at once, now and then more than memtables hold.
func (a *actor) batch(r *rand.Rand) {
	b, next := cairn.NewBatch(), a.root
	n := 1 + r.IntN(40)
	if r.IntN(100) == 0 {
		n = 3000
	}
	for range n {
		k := a.key(r)
		switch p := r.IntN(100); {
		case p < 80:
			v := a.value(r)
			b.Put(a.lend(0, k), a.lend(1, v))
			next = next.with(k, v)
			a.note(spanOf(k))
		case p < 97:
			b.Delete(a.lend(0, k))
			next = next.without(k)
			a.note(spanOf(k))
		default:
			s := a.span(r)
			b.DeleteRange(a.lendRange(s))
			next = next.withoutRange(s)
			a.note(s)
		}
		a.reclaim()
	}
	a.wrote("batch", a.w.db.Write(b), next, a.w.durability == cairn.Durable)
}

// view looks at a snapshot for a moment.
func (a *actor) view(db *cairn.DB, r *rand.Rand) {
	err := db.View(func(x *cairn.Tx) error {
		for range 1 + r.IntN(3) {
			if _, err := a.scan(x, a.root, r, nil); err != nil {
				return err
			}
			k := a.key(r)
			v, err := x.Get(a.lend(0, k))
			if !a.read("get in a view", a.root, k, v, err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		a.excuse("view", err)
	}
}

// update runs a managed transaction: nobody else writes these keys, so the first attempt
// has to succeed.
func (a *actor) update(r *rand.Rand) {
	seed, next := r.Uint64(), a.root
	attempts := 0
	err := a.w.db.Update(func(x *cairn.Tx) error {
		attempts++
		next = a.root
		r := rand.New(rand.NewPCG(seed, 2))
		for range 1 + r.IntN(8) {
			k := a.key(r)
			v, err := x.Get(a.lend(0, k))
			if !a.read("get in an update", next, k, v, err) {
				return err
			}
			n := a.value(r)
			if err := x.Put(a.lend(0, k), a.lend(1, n)); err != nil {
				return err
			}
			a.reclaim()
			next = next.with(k, n)
			a.note(spanOf(k))
		}
		if r.IntN(4) == 0 {
			if _, err := a.scan(x, next, r, nil); err != nil {
				return err
			}
		}
		return nil
	})
	a.wrote("update", err, next, a.w.durability == cairn.Durable)
	if attempts > 1 && a.w.keys != keysLong { // long keys are more than is remembered key by key
		failf("an update of keys that nobody else writes took %d attempts", attempts)
	}
}

// whatever compares all there is with the model.
func (a *actor) whatever(db *cairn.DB) error {
	return db.View(func(x *cairn.Tx) error {
		_, err := a.walk(x, a.root, a.whole, false, -1, nil)
		return err
	})
}
