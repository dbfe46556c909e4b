package metamorphic

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Kinds of keys.
const (
	keysMany = iota
	keysShort
	keysAlike
	keysInOrder
	keysLong
	keysHot
	keysKinds
)

// Kinds of values, each with those of the one before.
const (
	valuesLittle = iota
	valuesSome
	valuesMixed
	valuesLarge
	valuesKinds
)

// Kinds of disks.
const (
	diskMemory = iota
	diskMapped // in memory, too, with files that can be mapped
	diskReal
	diskKinds
)

// options are those of a run, and of the store that is open in it.
type options struct {
	disk, keys, values int
	failing, readers   bool
	most               int // transactions that an actor has open: old snapshots keep old versions
	memory             int64
	durability         cairn.Durability
	compression        cairn.Compression
	interval           time.Duration
}

func (o options) String() string {
	return fmt.Sprintf("disk %d, keys %d, values %d, failing %v, readers %v, most %d; last %d KiB, %v, %v, synced every %v",
		o.disk, o.keys, o.values, o.failing, o.readers, o.most, o.memory>>10, o.durability, o.compression, o.interval)
}

// drawn draws what an Open may change.
func (o *options) drawn(r *rand.Rand) {
	o.memory = []int64{1, 1, 2, 3, 8, 64}[r.IntN(6)] << 20
	o.durability = cairn.Durability(r.IntN(2))
	o.compression = cairn.Compression(r.IntN(4))
	o.interval = []time.Duration{time.Millisecond, 50 * time.Millisecond, time.Second, time.Hour}[r.IntN(4)]
}

// counts say what a run has seen.
type counts struct {
	calls, opens, kills, cuts, conflicts, wide, excused, alone atomic.Int64
}

func (c *counts) String() string {
	return fmt.Sprintf("%d calls, %d opens, %d kills, %d power cuts, %d conflicts (%d wide), %d errors of the disk",
		c.calls.Load(), c.opens.Load(), c.kills.Load(), c.cuts.Load(), c.conflicts.Load(), c.wide.Load(), c.excused.Load())
}

// world is a store, its disk and those who call it.
type world struct {
	options
	*counts
	r      *rand.Rand
	dir    string
	ram    *memfs.FS // what the store is on, if that is in memory
	disk   *faultfs.FS
	db     *cairn.DB
	reader *cairn.DB
	actors []*actor
	clock  atomic.Int64 // what happens gets a number, so that it is known what came before what
	traced func(format string, args ...any)

	faulty  atomic.Bool // the disk fails now
	faulted atomic.Bool // it has failed since the store was opened
}

// run does what a plan says and returns how the store failed it.
func run(p plan, c *counts, traced func(string, ...any)) (_ string, err error) {
	r := rand.New(rand.NewPCG(p.seed, 5))
	w := &world{counts: c, r: r, dir: "/store", traced: traced}
	w.options = options{
		disk: r.IntN(diskKinds), keys: r.IntN(keysKinds), values: r.IntN(valuesKinds),
		failing: r.IntN(2) == 0, readers: r.IntN(3) == 0, most: r.IntN(3) * 3,
	}
	if w.disk = faultfs.New(vfs.OS()); w.options.disk == diskReal {
		dir, err := os.MkdirTemp("", "metamorphic")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		w.dir = filepath.Join(dir, "store")
	} else {
		w.on(memfs.New())
	}
	defer func() {
		if err == nil {
			return
		}
		for _, a := range w.actors { // what can be closed without waiting is
			for _, t := range a.txs {
				_ = t.x.Rollback()
			}
		}
		w.disk.Heal()
		if w.reader != nil {
			_ = w.reader.Close()
		}
		_ = w.db.Close()
	}()
	if err := caught(func() { w.begin(len(p.rounds[0].steps)) }); err != nil {
		return w.options.String(), err
	}
	for i, ro := range p.rounds {
		if err := w.round(ro); err != nil {
			return w.options.String(), fmt.Errorf("round %d of %d: %w", i, len(p.rounds), err)
		}
	}
	return w.options.String(), caught(func() { w.close(); w.open(); w.judge(w.db, "in the end", nil); w.close() })
}

// caught turns a mismatch, and any other panic, into an error.
func caught(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if m, ok := r.(mismatch); ok {
				err = errors.New(string(m))
			} else {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}
	}()
	f()
	return nil
}

// on puts the world on a disk in memory.
func (w *world) on(m *memfs.FS) {
	if w.options.disk == diskMapped {
		m.AllowMaps()
	}
	w.ram, w.disk = m, faultfs.New(m)
}

func (w *world) begin(actors int) {
	prefixes := []string{"\xff", "\x00", "m", "\xfe"}
	if actors == 1 && w.r.IntN(2) == 0 {
		prefixes[0] = ""
	}
	for i := range actors {
		a := &actor{w: w, prefix: prefixes[i], history: []state{{}}}
		switch a.prefix {
		case "":
			a.whole.open = true
		case "\xff":
			a.whole = span{low: a.prefix, open: true}
		default:
			a.whole = span{low: a.prefix, high: string([]byte{a.prefix[0] + 1})}
		}
		w.actors = append(w.actors, a)
	}
	w.open()
}

// open opens the store, on a disk that fails perhaps, and then on one that does not.
func (w *world) open() {
	w.drawn(w.r)
	opts := &cairn.Options{FS: w.disk, Memory: w.memory, Durability: w.durability, Compression: w.compression, SyncInterval: w.interval}
	w.faulted.Store(false)
	if w.failing && w.r.IntN(3) == 0 {
		w.hurt(30)
		db, err := cairn.Open(w.dir, opts)
		if err == nil {
			w.db = db
			w.opens.Add(1)
			return
		}
		if !injected(err) {
			failf("open on a failing disk: %v", err)
		}
		w.excused.Add(1)
		w.heal()
		w.faulted.Store(false)
	}
	db, err := cairn.Open(w.dir, opts)
	if err != nil {
		failf("open: %v", err)
	}
	w.db = db
	w.opens.Add(1)
}

// close ends everything, on a disk that fails perhaps.
func (w *world) close() {
	for _, a := range w.actors {
		for len(a.txs) > 0 {
			a.end(0, w.r)
		}
	}
	if w.failing && w.r.IntN(4) == 0 {
		w.hurt(20)
	}
	if w.reader != nil && w.r.IntN(2) == 0 {
		w.closeReader()
	}
	if err := w.db.Close(); err != nil {
		w.actors[0].excuse("close", err)
	} else {
		for _, a := range w.actors {
			a.settled()
		}
	}
	w.heal()
}

func (w *world) closeReader() {
	if err := w.reader.Close(); err != nil {
		w.actors[0].excuse("close of a reader", err)
	}
	w.reader = nil
}

// hurt lets some of the next operations of the disk fail.
func (w *world) hurt(within int) {
	w.faulty.Store(true)
	w.faulted.Store(true)
	if w.ram != nil && w.r.IntN(4) == 0 {
		w.ram.SetCapacity(w.ram.Used() + 4096*int64(1+w.r.IntN(300)))
		return
	}
	if w.r.IntN(3) == 0 { // the log, again and again, while others look
		for range 1 + w.r.IntN(20) {
			late := time.Duration(w.r.IntN(1000)) * time.Microsecond
			w.disk.Add(faultfs.Rule{
				Kinds: faultfs.Write, Name: "*.log", At: int64(1 + w.r.IntN(within)),
				Do: faultfs.Short(w.r.IntN(200), syscall.EIO).Late(late),
			})
		}
		return
	}
	kinds := []faultfs.Kind{faultfs.Write, faultfs.Write, faultfs.Sync, faultfs.Sync, faultfs.Read, faultfs.Read, faultfs.Create, faultfs.Open,
		faultfs.Remove, faultfs.Rename, faultfs.Link, faultfs.SyncDir, faultfs.Preallocate, faultfs.Size, faultfs.List, faultfs.Stat}
	names := []string{"", "", "*.log", "*.sst", "MANIFEST*"}
	actions := []faultfs.Action{faultfs.Fail(syscall.EIO), faultfs.NoSpace(), faultfs.Short(faultfs.Half, syscall.EIO), faultfs.Short(100, vfs.ErrNoSpace),
		faultfs.Delay(time.Millisecond)}
	for range 1 + w.r.IntN(3) {
		rule := faultfs.Rule{
			Kinds: kinds[w.r.IntN(len(kinds))], Name: names[w.r.IntN(len(names))], Do: actions[w.r.IntN(len(actions))],
			At: int64(1 + w.r.IntN(1+w.r.IntN(within))), Sticky: w.r.IntN(4) == 0,
		}
		w.disk.Add(rule)
	}
}

// heal ends that. What was refused for it must work then.
func (w *world) heal() {
	w.disk.Heal()
	if w.ram != nil {
		w.ram.SetCapacity(0)
	}
}

// well waits until the store has noticed that the disk is well, and reports whether it
// can be written.
func (w *world) well() bool {
	w.heal()
	for _, a := range w.actors {
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			k, v := a.prefix+"well", "well"
			err := w.db.Put([]byte(k), []byte(v))
			a.note(spanOf(k))
			if a.wrote("put after the disk was healed", err, a.root.with(k, v), w.durability == cairn.Durable) {
				break
			}
			if errors.Is(err, cairn.ErrPoisoned) || errors.Is(err, cairn.ErrCommitUnknown) {
				return false
			}
			if time.Since(start) > time.Minute {
				failf("still refused a minute after the disk was healed: %v", err)
			}
		}
	}
	w.faulty.Store(false)
	return true
}

// round lets all actors call at once, and then looks at what is there.
func (w *world) round(ro round) (err error) {
	w.r = rand.New(rand.NewPCG(ro.seed, 4))
	if w.failing && w.r.IntN(2) == 0 {
		w.hurt(500)
	}
	if w.readers && w.reader == nil {
		w.openReader()
	}
	var stop atomic.Bool
	errs := make([]error, len(w.actors))
	var wg sync.WaitGroup
	for i, a := range w.actors {
		wg.Go(func() {
			errs[i] = caught(func() {
				for _, seed := range ro.steps[i] {
					if stop.Load() {
						return
					}
					a.step(seed)
				}
			})
			if errs[i] != nil {
				stop.Store(true)
			}
			w.calls.Add(a.calls)
			a.calls = 0
		})
	}
	var left *remains
	if w.ram != nil && w.r.IntN(3) == 0 {
		time.Sleep(time.Duration(w.r.IntN(5000)) * time.Microsecond)
		left = w.end()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return caught(func() { w.between(left) })
}

// openReader opens the store as another process would.
func (w *world) openReader() {
	db, err := cairn.Open(w.dir, &cairn.Options{FS: w.disk, ReadOnly: true, Memory: 1 << 20 << w.r.IntN(4)})
	if errors.Is(err, cairn.ErrLocked) && w.ram == nil { // this file system cannot have both
		w.readers = false
		w.alone.Add(1)
		return
	}
	if err != nil {
		w.actors[0].excuse("open to read", err)
		return
	}
	w.reader = db
}

// between judges a round and prepares the next.
func (w *world) between(left *remains) {
	if left != nil {
		w.look(left)
	}
	well := w.well()
	if w.ram != nil && w.r.IntN(3) == 0 {
		w.look(w.end())
	}
	switch {
	case w.ram != nil && w.r.IntN(8) == 0:
		w.goOn(w.end())
	case !well || w.r.IntN(8) == 0:
		w.close()
		w.faulty.Store(false)
		w.open()
		w.judge(w.db, "opened again", nil)
		for _, a := range w.actors {
			a.restart(a.root)
		}
	case w.r.IntN(3) == 0:
		w.judge(w.db, "after a round", nil)
	}
	if w.ram != nil {
		w.ram.TrimJournal()
	}
}
