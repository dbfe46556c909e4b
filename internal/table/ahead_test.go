package table

import (
	"errors"
	"runtime"
	"strings"
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
			m := newRoom(t, 1<<30)
			rd := m.open(t, &memFile{b: f.b}, meta)
			it := rd.NewIter(m.slot, IterOptions{})
			begin(it, dir)
			for range aheadAfter + 1 {
				if keys, _ := rd.resident(); len(keys) == 0 || len(keys) > aheadAfter+1 {
					t.Fatalf("resident at the beginning of a walk: %v", keys)
				}
				step(t, it, dir, values)
			}
			at := it.b
			eventually(t, "nothing was decoded ahead", func() bool {
				keys, pages := rd.resident()
				return len(keys) >= aheadAfter+2+aheadLeast/(4<<10) && values == (len(pages) > aheadAfter+2)
			})
			for i := range it.ahead.errands {
				it.ahead.errands[i].done.Wait()
			}
			it.Close()
			keys, pages := rd.resident()
			for b := at + dir; b != keys[0] && b != keys[len(keys)-1]; b += dir {
				if rd.slots[2*b].Peek() == nil || values && rd.slots[2*b+1].Peek() == nil {
					t.Fatalf("direction %d: block %d is left out, of %v and %v", dir, b, keys, pages)
				}
			}
			bytes := 0
			for _, b := range keys {
				bytes += int(rd.index.entries[b].keyForm)
			}
			for _, b := range pages {
				bytes += int(rd.index.entries[b].valueHeap)
			}
			if most := aheadMost*aheadBytes + 16<<10; bytes > most {
				t.Fatalf("%d bytes are resident, more than %d", bytes, most)
			}
		}
	}
}

// TestAheadErrands: on a long walk each goroutine is sent for more, up to a limit, and only for what is not resident.
func TestAheadErrands(t *testing.T) {
	_, f, meta := aheadTable(t)
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	gone := rd.Blocks() * 3 / 4
	it := rd.NewIter(m.slot, IterOptions{})
	for ok := it.First(); ok; ok = it.Next() {
		it.Value()
	}
	m.cache.DropAll(rd.slots[:2*gone])
	most := 0
	for it.First(); it.b < gone; step(t, it, 1, true) {
		for i := 0; it.ahead != nil && i < aheadMost; i++ {
			e, bytes := &it.ahead.errands[i], 0
			for b := e.from; b < e.to; b++ {
				bytes += int(rd.index.entries[b].keyForm) + int(rd.index.entries[b].valueHeap)
			}
			if most = max(most, bytes); e.to > gone || bytes > aheadBytes+4<<10 {
				t.Fatalf("blocks %d to %d are decoded ahead, %d bytes; from %d on they are resident", e.from, e.to, bytes, gone)
			}
		}
	}
	if most < aheadBytes {
		t.Errorf("no goroutine was sent for more than %d bytes", most)
	}
	it.Close()
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
		"little memory":  {f, meta, aheadLeast*aheadMost*aheadDivisor - 1, IterOptions{}, 2, false},
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
					if e := &it.ahead.errands[j]; e.from != e.to {
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
		e := &rd.index.entries[b]
		row := 0
		for i := range b {
			row += int(rd.index.entries[i].rows)
		}
		off := e.off + 12
		if !keys {
			off = e.valueOff() + 12
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
