package cache

import (
	"hash/maphash"
	"sync"
)

// flightShards is how many locks guard the reads in progress.
const flightShards = 32

// flight is one read in progress, which concurrent callers for its slot share.
// err is written before done is closed, and read afterwards. The page is not
// handed on here, see invariant 4 of the package comment.
type flight struct {
	done chan struct{} // nil: nobody waits
	err  error
}

// flights is the set of reads in progress.
type flights struct {
	seed   maphash.Seed
	shards [flightShards]struct {
		sync.Mutex
		bySlot map[*Slot]*flight // nil until it is needed: most caches of a short life need few
		spare  *flight           // one that nobody has waited for, or nil
		_      [64 - 24]byte
	}
}

func (fs *flights) init() {
	fs.seed = maphash.MakeSeed()
}

// join returns the flight for s; leader says that it is new, and that the caller
// must do the reading and call finish.
func (fs *flights) join(s *Slot) (f *flight, leader bool) {
	shard := &fs.shards[maphash.Comparable(fs.seed, s)%flightShards]
	shard.Lock()
	defer shard.Unlock()
	if f = shard.bySlot[s]; f != nil {
		if f.done == nil {
			f.done = make(chan struct{})
		}
		return f, false
	}
	if f, shard.spare = shard.spare, nil; f == nil {
		f = new(flight)
	}
	if shard.bySlot == nil {
		shard.bySlot = make(map[*Slot]*flight)
	}
	shard.bySlot[s] = f
	return f, true
}

// finish lets those who wait for f go on; later callers begin a new flight.
func (fs *flights) finish(s *Slot, f *flight) {
	shard := &fs.shards[maphash.Comparable(fs.seed, s)%flightShards]
	shard.Lock()
	defer shard.Unlock()
	delete(shard.bySlot, s)
	if f.done != nil {
		close(f.done)
	} else {
		shard.spare = f
	}
}
