package lifetest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// A large transaction puts n pairs, deletes every tenth and a range in the
// middle, and looks at itself on the way.
type large struct {
	n          uint32
	random     bool
	bits       uint // 1<<bits >= n, for the random order
	key, value []byte
}

func newLarge(r request) *large {
	l := &large{n: uint32(r.N), random: r.Order == "random"}
	for 1<<l.bits < r.N {
		l.bits++
	}
	return l
}

// order yields every id below n once.
func (l *large) order() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range uint32(1) << l.bits {
			id := i
			if l.random { // an odd factor permutes the residues
				id = (i*0x9E3779B1 ^ 0x5A5A5) & (1<<l.bits - 1)
			}
			if id < l.n && !yield(id) {
				return
			}
		}
	}
}

// alive reports whether the pair of an id is there in the end.
func (l *large) alive(id uint32) bool {
	return id%10 != 0 && (id < l.n/2 || id >= l.n/2+l.n/100)
}

// pair returns key and value, about 133 bytes, valid until the next call.
func (l *large) pair(id uint32) (key, value []byte) {
	l.key = appendKey(l.key[:0], id)
	l.value = appendValue(l.value[:0], id, 1)
	l.value = append(l.value, l.value[:33]...)
	return l.key, l.value
}

func (l *large) fill(tx *cairn.Tx) error {
	for id := range l.order() {
		if err := tx.Put(l.pair(id)); err != nil {
			return err
		}
	}
	for id := uint32(0); id < l.n; id += 10 {
		if err := tx.Delete(appendKey(l.key[:0], id)); err != nil {
			return err
		}
	}
	return tx.DeleteRange(cairn.Range{Low: appendKey(nil, l.n/2), High: appendKey(nil, l.n/2+l.n/100)})
}

// check compares all that tx sees, by gets and by scans both ways.
func (l *large) check(tx *cairn.Tx) error {
	r := rand.New(rand.NewPCG(1, uint64(l.n)))
	for range min(l.n/10, 20_000) {
		id := r.Uint32N(l.n)
		key, want := l.pair(id)
		got, err := tx.Get(key)
		switch {
		case !l.alive(id) && errors.Is(err, cairn.ErrNotFound):
		case err != nil || !l.alive(id) || !bytes.Equal(got, want):
			return fmt.Errorf("get of id %d (alive: %v): %q, %v", id, l.alive(id), got, err)
		}
	}
	id := uint32(0)
	err := l.compare(tx.Scan(cairn.Range{}), func() (uint32, bool) { id++; return id - 1, id <= l.n })
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	id = l.n
	err = l.compare(tx.ScanBackward(cairn.Range{}), func() (uint32, bool) { id--; return id, id < l.n })
	if err != nil {
		return fmt.Errorf("backward scan: %w", err)
	}
	return tx.Err()
}

// compare compares rows with the living ids that next yields.
func (l *large) compare(rows iter.Seq2[[]byte, []byte], next func() (uint32, bool)) error {
	living := func() (uint32, bool) {
		id, ok := next()
		for ok && !l.alive(id) {
			id, ok = next()
		}
		return id, ok
	}
	for k, v := range rows {
		id, ok := living()
		if key, value := l.pair(id); !ok || !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			return fmt.Errorf("%q=%q, want id %d", k, v, id)
		}
	}
	if id, ok := living(); ok {
		return fmt.Errorf("ends before id %d", id)
	}
	return nil
}

var errRollback = errors.New("rolled back on purpose")

// large runs a large transaction and ends it as told.
func (s *server) large(r request) error {
	l := newLarge(r)
	err := s.db.Update(func(tx *cairn.Tx) error {
		if err := l.fill(tx); err != nil {
			return err
		}
		if err := l.check(tx); err != nil {
			return fmt.Errorf("inside the transaction: %w", err)
		}
		switch r.End {
		case "rollback":
			return errRollback
		case "hang":
			s.out.WriteString("{}\n")
			s.out.Flush()
			select {}
		}
		return nil
	})
	if err != nil {
		if r.End == "rollback" && errors.Is(err, errRollback) {
			return nil
		}
		return err
	}
	return s.db.View(l.check)
}

// sustain puts random pairs for a time.
func (s *server) sustain(r request, a *answer) error {
	rnd := rand.New(rand.NewPCG(r.Seed, 3))
	value := make([]byte, 0, 300)
	var key []byte
	for start := time.Now(); time.Since(start).Seconds() < r.Seconds; {
		for range 200 {
			id := rnd.Uint32N(r.IDs)
			key, value = appendKey(key[:0], id), appendValue(value[:0], id, uint32(a.N))
			value = append(append(value, value...), value...)
			before := time.Now()
			if err := s.db.Put(key, value); err != nil {
				return err
			}
			a.Slowest = max(a.Slowest, time.Since(before).Seconds())
			a.N++
		}
		a.MostRuns = max(a.MostRuns, statsOf(s.db).Level0)
	}
	return nil
}

// tables counts the table files of a store.
// tables counts the files of tables, and of them those that are empty: while a store is open
// there may be one, for the next table.
func tables(dir string) (n, empty int) {
	_, names := diskBytes(dir)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		n++
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Size() == 0 {
			empty++
		}
	}
	return n, empty
}

// TestLargeTx: a transaction far larger than memory commits, is rolled back or
// dies, and sees itself meanwhile.
func TestLargeTx(t *testing.T) {
	n, memory := of(short(60_000), 3_000_000), of(int64(8*mb), 256*mb)
	for _, order := range []string{"sorted", "random"} {
		for _, end := range []string{"commit", "rollback", "kill"} {
			t.Run(order+"/"+end, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "store")
				open := request{Do: "open", Dir: dir, Memory: memory, IDs: 1}
				do := request{Do: "large", N: n, Order: order, End: end}
				if end == "kill" {
					killLarge(t, open, do)
					return
				}
				c := start(t)
				c.do(open)
				a := c.do(do)
				judgePeak(t, a, memory)
				t.Logf("%d pairs: %.1f s, %+v", n, a.Seconds, a.Stats)
				if files := awaitTables(c, dir); end == "rollback" && files != 0 {
					t.Errorf("%d table files after the rollback", files)
				}
				c.do(request{Do: "close"})
				if end == "commit" {
					judgeReopened(t, c, open, newLarge(do))
				}
			})
		}
	}
}

func judgePeak(t *testing.T, a answer, memory int64) {
	t.Helper()
	t.Logf("peak RSS %.1f MB with Memory = %d MB", float64(a.Usage.Peak)/mb, memory/mb)
	if a.Usage.Peak > memory+slack && !raceEnabled {
		t.Errorf("peak RSS %d bytes, allowed %d", a.Usage.Peak, memory+slack)
	}
}

// awaitTables waits until there are as many table files as tables and returns
// their number; it fails the test if that does not come about.
func awaitTables(c *child, dir string) int {
	c.t.Helper()
	for range 200 {
		a := c.do(request{Do: "base"})
		if n, empty := tables(dir); a.Stats.Tables == n-empty && empty <= 1 && a.Stats.Debt == 0 {
			return a.Stats.Tables
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, names := diskBytes(dir)
	c.t.Errorf("files %v, but the store has %+v", names, c.do(request{Do: "base"}).Stats)
	return 0
}

// judgeReopened checks that what was committed is there in another life.
func judgeReopened(t *testing.T, c *child, open request, l *large) {
	t.Helper()
	c.do(open)
	c.ask(request{Do: "scan"})
	var key, value []byte
	for id := range l.n {
		if !l.alive(id) {
			continue
		}
		wantKey, wantValue := l.pair(id)
		key, value = c.blob(key), c.blob(value)
		if !bytes.Equal(key, wantKey) || !bytes.Equal(value, wantValue) {
			t.Fatalf("after reopening: %q, want id %d", key, id)
		}
	}
	if key = c.blob(key); len(key) > 0 {
		t.Fatalf("after reopening: %q behind the end", key)
	}
	c.answer()
	c.do(request{Do: "close"})
}

// killLarge kills a transaction once it has written everything, opens the store
// again, and demands that nothing is left of it.
func killLarge(t *testing.T, open, do request) {
	dir := open.Dir
	c := start(t)
	c.do(open)
	c.do(request{Do: "run", N: 1}) // something that stays
	do.End = "hang"
	c.do(do)
	if n, empty := tables(dir); n == empty {
		t.Error("the transaction has not spilled")
	}
	before, _ := diskBytes(dir)
	c.stop()
	c = start(t)
	c.do(open)
	awaitTables(c, dir)
	after, names := diskBytes(dir)
	t.Logf("%d bytes when killed, %d after reopening: %v", before, after, names)
	c.do(request{Do: "close"})
	if _, names := diskBytes(dir); len(names) > 5 {
		t.Errorf("left after closing: %v", slices.Sorted(slices.Values(names)))
	}
}

// TestSustained: under random puts without pause memory, level 0 and the longest
// wait stay bounded.
func TestSustained(t *testing.T) {
	memory := of(int64(8*mb), 32*mb)
	c := start(t)
	c.do(request{Do: "open", Dir: filepath.Join(t.TempDir(), "store"), Memory: memory, IDs: 1})
	a := c.do(request{Do: "sustain", Seconds: of(1.0, 30), Seed: testSeed(t), IDs: of(uint32(50_000), 2_000_000)})
	t.Logf("%d puts in %.1f s, slowest %.3f s, at most %d tables in level 0, %+v", a.N, a.Seconds, a.Slowest, a.MostRuns, a.Stats)
	judgePeak(t, a, memory)
	if a.Slowest > 3 {
		t.Errorf("a put took %.1f s", a.Slowest)
	}
	if a.MostRuns > 40 {
		t.Errorf("%d tables in level 0", a.MostRuns)
	}
	if a.Stats.BackgroundError != "" {
		t.Errorf("background error: %s", a.Stats.BackgroundError)
	}
	c.do(request{Do: "close"})
}
