package workload

import (
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// cost guesses what operations of an engine take, for estimates: within a factor
// of two on the machines seen so far.
type cost struct {
	engine    engine.Info
	sync      bool
	syncDelay time.Duration
	value     int // bytes
}

func (p Params) cost(e engine.Info, syncDelay time.Duration) cost {
	return cost{e, p.Sync && e.Can(engine.CanSync), syncDelay, p.ValueBytes}
}

// syncs is how many delays of a plain sync a commit takes: engines that write in
// several places sync more than once.
func (c cost) syncs() float64 {
	switch c.engine.Name {
	case "boltdb", "badger", "pogreb", "tokyocabinet", "tokyocabinet-bdb":
		return 3.5
	}
	return 2
}

// put is a commit of one pair.
func (c cost) put() time.Duration {
	t := 8*time.Microsecond + time.Duration(4*c.value)
	if isBolt(c.engine) {
		t += 30 * time.Microsecond
	}
	if c.sync {
		t += time.Duration(c.syncs() * float64(c.syncDelay))
	}
	if c.engine.Floor {
		t = time.Microsecond
	}
	return t
}

// batched is one pair of a batch.
func (c cost) batched() time.Duration {
	if !c.engine.Can(engine.CanBatch) {
		return c.put()
	}
	return 3*time.Microsecond + time.Duration(6*c.value)
}

// searching engines look into several tables for each read and each scan.
func (c cost) searching() bool {
	switch c.engine.Name {
	case "pebble", "badger", "goleveldb", "leveldb", "rocksdb":
		return true
	}
	return false
}

// get is one random read.
func (c cost) get() time.Duration {
	t := 2500*time.Nanosecond + time.Duration(c.value/2)
	if c.searching() {
		t += 9 * time.Microsecond
	}
	return t
}

// walked is one pair of an iteration.
func (c cost) walked() time.Duration {
	t := 500*time.Nanosecond + time.Duration(c.value/2)
	if c.searching() {
		t += time.Microsecond
	}
	return t
}

// scanned is a scan of n pairs.
func (c cost) scanned(n int) time.Duration { return c.get() + times(n, c.walked()) }

// opening is a store opened and closed again: Badger ends its compactions, Cairn
// writes its tables.
func (c cost) opening() time.Duration {
	switch c.engine.Name {
	case "badger":
		return 60 * time.Millisecond
	case "cairn":
		return 30 * time.Millisecond
	}
	return 8 * time.Millisecond
}

// starting is a process with its data made.
const starting = 150 * time.Millisecond

func times(n int, d time.Duration) time.Duration { return time.Duration(n) * d }
