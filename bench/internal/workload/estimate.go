package workload

import (
	"slices"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// Guesses are calibrated by the first round of a quick run on two cores; a test holds
// them to it (testdata/quick-times.json).
const (
	// starting is a process started, its data made and what it wrote removed again.
	starting = 70 * time.Millisecond
	// idle is a process that finds that its engine cannot do the workload.
	idle = 10 * time.Millisecond
	// measuring is what Measure takes by itself.
	measuring = 80 * time.Microsecond
)

// TimeOf guesses how long a cell takes with all its repeats, given the delay of one sync.
func (w Workload) TimeOf(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	once := w.timeOfOne(p, e, syncDelay)
	return once + times(w.Repeats(p)-1, max(0, once-starting))
}

// timeOfOne guesses how long a cell takes that is not repeated.
func (w Workload) timeOfOne(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	if w.leavesOut(p, e.Name) {
		return idle
	}
	if e.Can(engine.CanGet) || w.WritesOnly {
		return w.Estimate(p, e, syncDelay)
	}
	c := p.cost(e, syncDelay)
	switch w.Name { // what writesOf does
	case "w1":
		return starting + times(2*p.N, c.put())
	case "w4":
		return starting + times(2*p.N, c.written())
	}
	return idle
}

// CommitsTime guesses how long a process takes that only makes some commits, each of
// whose syncs takes syncDelay.
func CommitsTime(e engine.Info, sync bool, commits int, syncDelay time.Duration) time.Duration {
	c := Params{Sync: sync}.cost(e, syncDelay)
	return starting + c.opening() + times(commits, c.put())
}

// cost guesses what operations of an engine take.
type cost struct {
	engine    engine.Info
	sync      bool
	syncDelay time.Duration
	value     int // bytes
	set       int64
}

func (p Params) cost(e engine.Info, syncDelay time.Duration) cost {
	return cost{e, p.Sync && e.Can(engine.CanSync), syncDelay, p.ValueBytes, p.DataBytes()}
}

// Large sets are merged while they are written, and no cache of a processor holds what is
// read: on YCSB of 1 GB operations took three times as long as on small ones, and on W1 of
// 400 MB a sync half as long again.
const (
	largeForSyncs = 256 << 20
	largeForWork  = 512 << 20
)

// work is what the processors take for an operation that takes d on a small set.
func (c cost) work(d time.Duration) time.Duration {
	if c.set > largeForWork && !c.engine.Floor {
		return 3 * d
	}
	return d
}

func (c cost) is(names ...string) bool { return slices.Contains(names, c.engine.Name) }

// synced is the wait for a commit to be durable. Engines that write in two places
// sync twice, the second time less.
func (c cost) synced() time.Duration {
	switch {
	case !c.sync:
		return 0
	case c.set > largeForSyncs:
		c.set, c.syncDelay = 0, c.syncDelay*3/2
		return c.synced()
	case c.is("lmdb", "boltdb", "bbolt", "badger", "tokyo-hash", "tokyo-btree"):
		return c.syncDelay * 9 / 5
	}
	return c.syncDelay
}

// put is a commit of one pair.
func (c cost) put() time.Duration {
	if c.engine.Floor {
		return c.written() + c.synced()
	}
	return c.work(3*time.Microsecond+time.Duration(2*c.value)) + c.synced()
}

// written is one pair of a floor: a copy of its bytes.
func (c cost) written() time.Duration { return time.Microsecond + time.Duration(c.value/2) }

// batched is one pair of a batch.
func (c cost) batched() time.Duration {
	switch {
	case c.engine.Floor:
		return c.written()
	case !c.engine.Can(engine.CanBatch):
		return c.put()
	}
	return c.work(2*time.Microsecond + time.Duration(2*c.value))
}

// searching engines look into several tables for each read, and unpack a block.
func (c cost) searching() bool {
	return c.is("leveldb", "goleveldb", "rocksdb") || c.wandering()
}

// wandering engines do for each step of a walk what others do for a read.
func (c cost) wandering() bool { return c.is("pebble", "badger", "nutsdb-keys", "tokyo-btree") }

// get is one random read, compared with what is expected.
func (c cost) get() time.Duration {
	if c.engine.Floor {
		return 400*time.Nanosecond + time.Duration(c.value/8)
	}
	t := 1200*time.Nanosecond + time.Duration(c.value/4)
	if c.searching() {
		t += time.Microsecond + time.Duration(4*c.value)
	}
	return c.work(t)
}

// walked is one pair of an iteration.
func (c cost) walked() time.Duration {
	t := 300*time.Nanosecond + time.Duration(c.value/4)
	switch {
	case c.wandering():
		t += 2 * time.Microsecond
	case c.searching():
		t += time.Duration(c.value / 2)
	}
	return c.work(t)
}

// scanned is a scan of n pairs.
func (c cost) scanned(n int) time.Duration { return c.get() + times(n, c.walked()) }

// opening is a store opened and closed again: Badger ends its compactions.
func (c cost) opening() time.Duration {
	switch {
	case c.is("badger"):
		return 30 * time.Millisecond
	case !c.engine.Can(engine.CanDisk):
		return 0
	}
	return 4 * time.Millisecond
}

func times(n int, d time.Duration) time.Duration { return time.Duration(n) * d }
