package table

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// aheadTable is a table of some hundred blocks of about 1 KiB, whose values compress.
func aheadTable(t *testing.T) (*content, *memFile, base.TableMeta) {
	t.Helper()
	old := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
	c := counters(3000, 100)
	for i := range c.rows {
		c.rows[i].val = strings.Repeat(c.rows[i].key, 1+80/len(c.rows[i].key))
	}
	f, meta := c.write(t, WriterOptions{Codec: block.S2, BlockBytes: 1 << 10})
	return c, f, meta
}

// resident returns which blocks have their key page resident, and which their value page.
func (r *Reader) resident() (keys, values []int) {
	for b := range r.Blocks() {
		if r.slots[2*b].Peek() != nil {
			keys = append(keys, b)
		}
		if r.slots[2*b+1].Peek() != nil {
			values = append(values, b)
		}
	}
	return keys, values
}

// eventually waits until ok, which is about what other goroutines do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal(what)
		}
	}
}

// step moves it to the next block in its direction, and reads the values if they are wanted.
func step(t *testing.T, it *Iter, dir int, values bool) {
	t.Helper()
	for at := it.b; it.b == at; {
		if values {
			if _, err := it.Value(); err != nil {
				t.Fatal(err)
			}
		}
		if dir > 0 && !it.Next() || dir < 0 && !it.Prev() {
			t.Fatalf("the table ends at block %d of %d: %v", at, it.r.Blocks(), it.Err())
		}
	}
}

func begin(it *Iter, dir int) bool {
	if dir > 0 {
		return it.First()
	}
	return it.Last()
}

// TestAhead: a walk over blocks that are not resident, up or down, finds some more of them decoded, with values if
// it has read values, and not many.
func TestAhead(t *testing.T) {
	_, f, meta := aheadTable(t)
	for _, dir := range []int{1, -1} {
		for _, values := range []bool{false, true} {
			eventually(t, "nothing is decoded ahead", func() bool { return walkedAhead(t, f, meta, dir, values) })
		}
	}
}

// walkedAhead does that once, and reports whether there were processors for it.
func walkedAhead(t *testing.T, f *memFile, meta base.TableMeta, dir int, values bool) bool {
	t.Helper()
	m := newRoom(t, 1<<30)
	rd := m.open(t, &memFile{b: f.b}, meta)
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	begin(it, dir)
	for range aheadAfter + 1 {
		if keys, _ := rd.resident(); len(keys) == 0 || len(keys) > aheadAfter+1 {
			t.Fatalf("resident at the beginning of a walk: %v", keys)
		}
		step(t, it, dir, values)
	}
	at, end := it.b, it.b+dir
	if it.ahead.errands[0] == nil {
		return false
	}
	for _, e := range it.ahead.errands {
		if e == nil { // the table ends, or somebody wanted a processor
			break
		}
		for start := time.Now(); !e.taken.Load(); time.Sleep(time.Millisecond) {
			if time.Since(start) > time.Second {
				return false
			}
		}
		e.done.Wait()
		end = e.to
	}
	eventually(t, "those who were sent are still under way", func() bool { return it.ahead.sent.Load() == 0 })
	keys, pages := rd.resident()
	for b := at + dir; b != end; b += dir {
		if rd.slots[2*b].Peek() == nil || values != (rd.slots[2*b+1].Peek() != nil) {
			t.Fatalf("direction %d: block %d is left out, of %v and %v", dir, b, keys, pages)
		}
	}
	bytes := 0
	for _, b := range keys {
		bytes += int(rd.index.Blocks[b].KeyForm)
	}
	for _, b := range pages {
		bytes += int(rd.index.Blocks[b].ValueHeap)
	}
	if least, most := aheadLeast, aheadMost*aheadBytes+16<<10; bytes < least || bytes > most {
		t.Fatalf("%d bytes are resident, not %d to %d", bytes, least, most)
	}
	return true
}

// TestAheadErrands: on a long walk each goroutine is sent for more, up to a limit, and only for what is not resident.
func TestAheadErrands(t *testing.T) {
	_, f, meta := aheadTable(t)
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	eventually(t, "no goroutine was sent for as much as it should be", func() bool {
		it := rd.NewIter(m.slot, IterOptions{})
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			it.Value()
		}
		gone := rd.Blocks() * 3 / 4
		m.cache.DropAll(rd.slots[:2*gone])
		most := 0
		for it.First(); it.b < gone; step(t, it, 1, true) {
			for i := 0; it.ahead != nil && i < aheadMost; i++ {
				e := it.ahead.errands[i]
				if e == nil {
					continue
				}
				if most = max(most, e.bytes); e.to > gone || e.bytes > aheadBytes+4<<10 {
					t.Fatalf("blocks %d to %d are decoded ahead, %d bytes; from %d on they are resident", e.from, e.to, e.bytes, gone)
				}
			}
		}
		return most >= aheadBytes
	})
}

// TestAheadGivesWay: where others wait for a processor nobody is sent for a while.
func TestAheadGivesWay(t *testing.T) {
	_, f, meta := aheadTable(t)
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range 6 {
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	eventually(t, "nobody was given way", func() bool {
		m.cache.DropAll(rd.slots)
		it := rd.NewIter(m.slot, IterOptions{})
		defer it.Close()
		it.First()
		for range 20 {
			step(t, it, 1, true)
		}
		return it.ahead.paused > aheadSkip
	})
	stop.Store(true)
	busy.Wait()
}

// TestAheadOfAllWalks: what is read ahead of all walks together has a limit, and is given back.
func TestAheadOfAllWalks(t *testing.T) {
	_, f, meta := aheadTable(t)
	m := newRoom(t, 4<<20)
	var walks []*Iter
	for i := range 8 {
		walks = append(walks, m.open(t, &memFile{b: f.b}, meta).NewIter(m.slot, IterOptions{}))
		walks[i].First()
	}
	limit, most := int(m.cache.AheadLimit()), 0
	for n := range 200 {
		all := 0
		for _, it := range walks {
			if n%20 == 0 {
				m.cache.DropAll(it.r.slots)
			}
			step(t, it, 1, true)
			for i := 0; it.ahead != nil && i < aheadMost; i++ {
				if e := it.ahead.errands[i]; e != nil {
					all += e.bytes
				}
			}
		}
		if most = max(most, all); all > limit {
			t.Fatalf("%d bytes are read ahead, %d may be", all, limit)
		}
	}
	for _, it := range walks {
		it.Close()
	}
	if !m.cache.TakeAhead(limit) || m.cache.TakeAhead(1) {
		t.Errorf("not %d bytes may be read ahead when no walk is under way; %d were", limit, most)
	}
}

// TestAheadEndsWithTheWalk: nobody is at work for a walk that is closed, or has turned.
func TestAheadEndsWithTheWalk(t *testing.T) {
	_, f, meta := aheadTable(t)
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	for i := range 100 {
		it := rd.NewIter(m.slot, IterOptions{})
		it.First()
		for range aheadAfter + 2 {
			step(t, it, 1, true)
		}
		if i%2 == 0 {
			it.Close()
		} else {
			it.SeekGE([]byte(meta.Largest))
		}
		if n := m.dom.Participants(); n != 1 {
			t.Fatalf("%d participants of the epoch", n)
		}
		it.Close()
		m.cache.DropAll(rd.slots)
	}
}

// TestAheadIsWaitedFor: a walk that is closed, or turns, waits until nobody reads for it any more: its table may be
// closed next.
func TestAheadIsWaitedFor(t *testing.T) {
	_, f, meta := aheadTable(t)
	for _, end := range []func(it *Iter){func(it *Iter) { it.Close() }, func(it *Iter) { it.SeekGE([]byte(meta.Smallest)) }} {
		eventually(t, "nobody was sent", func() bool {
			gated := &memFile{b: f.b, gate: make(chan struct{})}
			gated.gateFrom.Store(1 << 40)
			m := newRoom(t, 1<<30)
			rd := m.open(t, gated, meta)
			it := rd.NewIter(m.slot, IterOptions{})
			defer it.Close()
			open := sync.OnceFunc(func() { close(gated.gate) })
			defer open()
			it.First()
			for range aheadAfter {
				step(t, it, 1, true)
			}
			gated.gateFrom.Store(rd.index.Blocks[it.b+3].Off)
			step(t, it, 1, true)
			begun := false
			for start := time.Now(); !begun && time.Since(start) < time.Second; time.Sleep(time.Millisecond) {
				begun = it.ahead.errands[0] == nil || it.ahead.errands[0].taken.Load()
			}
			if !begun || it.ahead.errands[0] == nil {
				open()
				return false
			}
			ended := make(chan struct{})
			go func() {
				end(it)
				close(ended)
			}()
			select {
			case <-ended:
				t.Error("a walk has ended and somebody still reads for it")
			case <-time.After(20 * time.Millisecond):
			}
			open()
			<-ended
			if n := m.dom.Participants(); n != 1 {
				t.Errorf("%d participants of the epoch", n)
			}
			return true
		})
	}
}

// TestAheadShowsTheSameRows: where blocks are decoded ahead, everything is found as it is without, whatever is
// resident, and whichever way the walk turns.
func TestAheadShowsTheSameRows(t *testing.T) {
	c, f, meta := aheadTable(t)
	m := newRoom(t, 32<<20)
	rd := m.open(t, f, meta)
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	for i := range 40 {
		for b := i % 7; i%3 == 1 && b < rd.Blocks(); b += 1 + i%7 { // gaps
			m.cache.Drop(&rd.slots[2*b+i%2])
		}
		if i%3 == 0 {
			m.cache.DropAll(rd.slots)
		}
		n, at := 0, i*len(c.rows)/40
		for ok := it.SeekGE([]byte(c.rows[at].key)); ok; ok = it.Next() {
			if v, err := it.Value(); err != nil || string(it.Key()) != c.rows[at+n].key || string(v) != c.rows[at+n].val {
				t.Fatalf("row %d: %q is %q, %v", at+n, it.Key(), v, err)
			}
			if n++; n%100 == 0 && (!it.Prev() || !it.Next()) { // over the border of a block, now and then
				t.Fatal(it.Err())
			}
			if n == 900 {
				break
			}
		}
		if it.Err() != nil || n != min(900, len(c.rows)-at) {
			t.Fatalf("%d rows from %d: %v", n, at, it.Err())
		}
		for n--; it.Valid() && n > 0; n-- {
			if string(it.Key()) != c.rows[at+n].key && at+n < len(c.rows) {
				t.Fatalf("down to row %d: %q", at+n, it.Key())
			}
			it.Prev()
		}
	}
}

// TestAheadGoesOnOverBorders: a walk that looks back over the border of each block is still one.
func TestAheadGoesOnOverBorders(t *testing.T) {
	_, f, meta := aheadTable(t)
	for _, dir := range []int{1, -1} {
		m := newRoom(t, 1<<30)
		rd := m.open(t, &memFile{b: f.b}, meta)
		it := rd.NewIter(m.slot, IterOptions{})
		begin(it, dir)
		for range aheadAfter + 2 {
			step(t, it, dir, true)
			if dir > 0 && (!it.Prev() || !it.Next()) || dir < 0 && (!it.Next() || !it.Prev()) {
				t.Fatal(it.Err())
			}
		}
		if it.ahead == nil {
			t.Errorf("direction %d: nothing is decoded ahead", dir)
		}
		it.SeekGE([]byte(meta.Smallest))
		it.SeekLT([]byte(meta.Largest))
		if it.ahead != nil {
			t.Errorf("direction %d: still decoded ahead where the walk has ended", dir)
		}
		it.Close()
	}
}

// TestAheadOfNothing: blocks are not decoded ahead on one processor, where memory is scarce, of a table that is
// resident, for walks past the cache, nor where values are stored as they are.
func TestAheadOfNothing(t *testing.T) {
	c, f, meta := aheadTable(t)
	plain, plainMeta := c.write(t, WriterOptions{BlockBytes: 1 << 10})
	for name, test := range map[string]struct {
		f     *memFile
		meta  base.TableMeta
		limit int64
		opts  IterOptions
		procs int
		warm  bool
	}{
		"one processor":  {f, meta, 1 << 30, IterOptions{}, 1, false},
		"little memory":  {f, meta, 2<<20 - 1, IterOptions{}, 2, false},
		"past the cache": {f, meta, 1 << 30, IterOptions{NoCache: true}, 2, false},
		"resident":       {f, meta, 1 << 30, IterOptions{}, 2, true},
		"as they are":    {plain, plainMeta, 1 << 30, IterOptions{}, 2, false},
	} {
		m := newRoom(t, test.limit)
		rd := m.open(t, &memFile{b: test.f.b}, test.meta)
		for i := range 2 {
			if i == 0 && !test.warm {
				continue
			}
			it := rd.NewIter(m.slot, IterOptions{NoCache: test.opts.NoCache})
			runtime.GOMAXPROCS(test.procs)
			it.First()
			for range 20 {
				step(t, it, 1, true)
				for j := 0; it.ahead != nil && j < aheadMost && i == 1; j++ {
					if e := it.ahead.errands[j]; e != nil {
						t.Fatalf("%s: blocks %d to %d are decoded ahead", name, e.from, e.to)
					}
				}
			}
			it.Close()
			runtime.GOMAXPROCS(2)
		}
	}
}

// TestAheadOfDamage: what cannot be read is found where the walk comes to it, and not before; an error that comes
// once, ahead, may be nobody's.
func TestAheadOfDamage(t *testing.T) {
	c, f, meta := aheadTable(t)
	m := newRoom(t, 1<<30)
	for _, keys := range []bool{true, false} {
		bad := &memFile{b: append([]byte(nil), f.b...)}
		rd := m.open(t, bad, meta)
		b := rd.Blocks() / 2
		e := &rd.index.Blocks[b]
		row := 0
		for i := range b {
			row += int(rd.index.Blocks[i].Rows)
		}
		off := e.Off + 12
		if !keys {
			off = e.ValueOff() + 12
		}
		bad.b[off]++
		it := rd.NewIter(m.slot, IterOptions{})
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			if _, err := it.Value(); err != nil {
				break
			}
			n++
		}
		if err := it.Err(); !errors.Is(err, base.ErrCorrupt) || n != row {
			t.Errorf("keys: %v: walk ends after %d rows, %v, the damage is in that of row %d of %d", keys, n, err, row, len(c.rows))
		}
		it.Close()
	}
	for at := 1; ; at += 7 {
		bad := &memFile{b: f.b}
		rd := m.open(t, bad, meta)
		bad.failAt = at
		it := rd.NewIter(m.slot, IterOptions{})
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			if v, err := it.Value(); err != nil || string(v) != c.rows[n].val {
				break
			}
			n++
		}
		err := it.Err()
		it.Close()
		if bad.failAt > 0 {
			break
		}
		if err == nil && n != len(c.rows) || err != nil && !errors.Is(err, errDisk) {
			t.Fatalf("read %d failed: %d rows, %v", at, n, err)
		}
	}
}
