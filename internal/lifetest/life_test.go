package lifetest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// full reports whether the full versions of the tests are wanted.
func full() bool { return os.Getenv("CAIRN_LONG") != "" }

// short scales a number of things to do: there is less time under the race detector.
func short(n int) int {
	if raceEnabled {
		return n / 5
	}
	return n
}

// of returns the second argument in a full run.
func of[T any](short, long T) T {
	if full() {
		return long
	}
	return short
}

func testSeed(t *testing.T) uint64 {
	seed := rand.Uint64() >> 1
	if s := os.Getenv("CAIRN_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("CAIRN_SEED=%d repeats this run", seed)
	return seed
}

const mb = 1 << 20

// slack is what a process may need beside Options.Memory.
const slack = 64 * mb

// life is a store in a child and its model.
type life struct {
	t     *testing.T
	c     *child
	open  request
	ops   *ops
	now   versions
	snaps map[int]versions
	next  int // number of the next snapshot
}

// TestLife: a store equals a sorted map at every moment of a long life, and when
// it has come to rest it is as small as a new one.
func TestLife(t *testing.T) {
	seed := testSeed(t)
	total, ids := of(short(200_000), 5_700_000), of(uint32(short(150_000)), 4_000_000) // nine in ten are puts
	memory := of(int64(16*mb), 128*mb)
	l := &life{
		t: t, c: start(t), ops: newOps(seed, ids), now: make(versions, ids), snaps: map[int]versions{}, next: 1,
		open: request{Do: "open", Dir: filepath.Join(t.TempDir(), "store"), Memory: memory, Seed: seed, IDs: ids},
	}
	base := l.c.do(request{Do: "base"}).Usage
	l.c.do(l.open)
	r := rand.New(rand.NewPCG(seed, 9))
	const phases = 20
	for phase := range phases {
		l.run(total / phases)
		l.manage(r, phase)
	}
	for snap := range l.snaps {
		l.finish(snap)
	}
	l.judge(memory, base)
}

// run lets child and model do n operations.
func (l *life) run(n int) {
	l.t.Helper()
	a := l.c.do(request{Do: "run", N: n})
	for done := 0; done < n; {
		c := l.ops.next()
		for _, o := range c.ops {
			l.now.apply(o)
		}
		done += len(c.ops)
	}
	l.t.Logf("%d operations: %.1f s, slowest commit %.3f s, peak %d MB, heap %d of %d MB, %+v",
		n, a.Seconds, a.Slowest, a.Usage.Peak/mb, a.Usage.HeapInuse/mb, a.Usage.HeapSys/mb, a.Stats)
	if a.Stats.BackgroundError != "" {
		l.t.Fatalf("background error: %s", a.Stats.BackgroundError)
	}
}

// manage does between two phases what is not a write.
func (l *life) manage(r *rand.Rand, phase int) {
	l.t.Helper()
	l.gets(r.Uint64()>>1, of(short(5_000), 50_000))
	if phase%3 == 0 && len(l.snaps) < 3 {
		l.c.do(request{Do: "snap", Snap: l.next})
		l.snaps[l.next] = slices.Clone(l.now)
		l.next++
	}
	if phase%4 == 3 {
		l.scan(0, l.now, phase%8 == 3)
	}
	for snap, model := range l.snaps {
		if phase%5 == 2 {
			l.scan(snap, model, r.IntN(2) == 0)
		}
	}
	if phase%7 == 6 {
		for snap := range l.snaps {
			l.finish(snap)
		}
		l.reopen()
	}
}

// finish compares a snapshot a last time, both ways, and ends it.
func (l *life) finish(snap int) {
	l.scan(snap, l.snaps[snap], false)
	l.scan(snap, l.snaps[snap], true)
	l.c.do(request{Do: "drop", Snap: snap})
	delete(l.snaps, snap)
}

func (l *life) reopen() {
	l.t.Helper()
	closed := l.c.do(request{Do: "close"})
	a := l.c.do(l.open)
	l.t.Logf("close %.3f s, open %.3f s, peak %d MB", closed.Seconds, a.Seconds, a.Usage.Peak/mb)
}

// gets compares random point reads.
func (l *life) gets(seed uint64, n int) {
	l.t.Helper()
	ids := newOps(seed, l.ops.ids)
	l.c.ask(request{Do: "get", Seed: seed, IDs: l.ops.ids, N: n})
	var got, want []byte
	for range n {
		id := ids.r.Uint32N(l.ops.ids)
		want = want[:0]
		if l.now[id] != 0 {
			want = appendValue(want, id, l.now[id])
		}
		if got = l.c.blob(got); !bytes.Equal(got, want) {
			l.t.Fatalf("get of id %d: %q, want version %d: %q", id, got, l.now[id], want)
		}
	}
	a := l.c.answer()
	l.t.Logf("%d gets: %.2f us each", n, a.Seconds/float64(n)*1e6)
}

// scan compares everything a snapshot holds, or the newest state (0), with a model.
func (l *life) scan(snap int, model versions, backward bool) {
	l.t.Helper()
	l.c.ask(request{Do: "scan", Snap: snap, Backward: backward})
	var key, value, wantKey, wantValue []byte
	rows := 0
	for i := range model {
		id := uint32(i)
		if backward {
			id = uint32(len(model) - 1 - i)
		}
		if model[id] == 0 {
			continue
		}
		wantKey, wantValue = appendKey(wantKey[:0], id), appendValue(wantValue[:0], id, model[id])
		if key = l.c.blob(key); len(key) > 0 {
			value = l.c.blob(value)
		}
		if !bytes.Equal(key, wantKey) || !bytes.Equal(value, wantValue) {
			l.t.Fatalf("scan of snapshot %d, row %d: %q=%q, want %q=%q", snap, rows, key, value, wantKey, wantValue)
		}
		rows++
	}
	if key = l.c.blob(key); len(key) > 0 {
		l.t.Fatalf("scan of snapshot %d goes on behind %d rows with %q", snap, rows, key)
	}
	a := l.c.answer()
	l.t.Logf("scan of snapshot %d, backward %v: %d rows equal, %.2f s, peak %d MB", snap, backward, rows, a.Seconds, a.Usage.Peak/mb)
}

// judge checks what a long life must have left: nothing.
func (l *life) judge(memory int64, base usage) {
	t := l.t
	l.scan(0, l.now, false)
	l.scan(0, l.now, true)
	idle := l.c.do(request{Do: "idle", Seconds: 600})
	used, names := diskBytes(l.open.Dir)
	t.Logf("no debt after %.1f s: %d bytes in %v; %+v %+v", idle.Seconds, used, names, idle.Stats, idle.Usage)
	l.scan(0, l.now, false)

	dir := filepath.Join(t.TempDir(), "fresh")
	a := l.c.do(request{Do: "copy", Dir: dir})
	fresh, _ := diskBytes(dir)
	if a.N != int64(l.now.live()) {
		t.Errorf("copied %d pairs of %d", a.N, l.now.live())
	}
	t.Logf("%d pairs: %d bytes; loaded in order into a fresh store and settled %d, ratio %.3f; then closed %d, ratio %.3f",
		a.N, used, a.Disk, float64(used)/float64(a.Disk), fresh, float64(used)/float64(fresh))
	// Both are open, at rest and without debt. What was written last may be too little for a
	// table (engine/rest.go): then there are a log segment, the next one, and the space put
	// aside for a flush.
	held := logBytes(l.open.Dir)
	if tables := used - held; tables > a.Disk*13/10 {
		t.Errorf("%d bytes on disk without the log, a fresh store has %d", tables, a.Disk)
	}
	if segment := memory / 16; held > 2*segment+segment*5/4+256<<10 {
		t.Errorf("%d bytes of log and put aside, with segments of %d", held, segment)
	}
	judgePeak(t, idle, memory)
	closed := l.c.do(request{Do: "close"})
	after, _ := diskBytes(l.open.Dir)
	t.Logf("closed: %d bytes, ratio %.3f, %+v", after, float64(after)/float64(fresh), closed.Usage)
	// A log that was too little for a table is compressed by Close, and with it what it is merged with: in
	// haste where that is much (tree.State.ClosesWell), and well when the store is open again, and nobody
	// writes to it.
	if slices.ContainsFunc(names, func(name string) bool { return filepath.Ext(name) == ".log" }) {
		l.c.do(l.open)
		for start := time.Now(); after > fresh*13/10 && time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
			after, _ = diskBytes(l.open.Dir)
			after -= logBytes(l.open.Dir)
		}
		l.c.do(request{Do: "close"})
		after, _ = diskBytes(l.open.Dir)
		t.Logf("opened, at rest and closed: %d bytes, ratio %.3f", after, float64(after)/float64(fresh))
	}
	if after > fresh*13/10 {
		t.Errorf("%d bytes on disk after closing, a fresh store has %d", after, fresh)
	}
	if u := closed.Usage; u.Goroutines > base.Goroutines || u.Files > base.Files || u.Maps > base.Maps || u.Mapped > base.Mapped {
		t.Errorf("leaked: before %+v, after %+v", base, u)
	}
	l.c.do(l.open)
	l.scan(0, l.now, true)
	l.c.do(request{Do: "close"})
}
