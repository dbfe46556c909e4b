package workload

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// records knows what a store that several goroutines read and write may answer:
// the versions each record has had acknowledged and begun. Ids count in the order
// of insertion; keys lie in another order.
type records struct {
	source *data.Source
	keys   data.Keys // in byte order: at the rank of each record
	rank   []int32   // by id
	id     []int32   // by rank
	size   int
	loaded int // records before the first insert

	begun []atomic.Uint32 // by id: the newest version a write of which has begun
	acked []atomic.Uint32 // by id: the newest version acknowledged; 0: none
	write [256]sync.Mutex // by id: writes of a record follow one another

	clock  atomic.Uint32   // counts inserts acknowledged
	since  []atomic.Uint32 // by id: the clock when its insert was acknowledged; 0: not yet
	next   atomic.Int32    // id of the next insert
	latest atomic.Int32    // ids below it are all acknowledged
	grow   sync.Mutex
}

// newRecords makes the data of p.N records and of inserts to come. If the user's
// keys are not enough for both, fewer are loaded.
func newRecords(p Params, inserts int) *records {
	source, keys := dataOf(p, p.N+inserts)
	total := min(p.N+inserts, keys.Len())
	r := &records{
		source: source, keys: keys, size: p.ValueBytes, loaded: max(1, total-inserts),
		rank: data.Order(total, p.Seed, 18), id: make([]int32, total),
		begun: make([]atomic.Uint32, total), acked: make([]atomic.Uint32, total), since: make([]atomic.Uint32, total),
	}
	for id, rank := range r.rank {
		r.id[rank] = int32(id)
	}
	r.next.Store(int32(r.loaded))
	r.latest.Store(int32(r.loaded))
	return r
}

func (r *records) key(id int32) []byte { return r.keys.At(int(r.rank[id])) }

// value of a version; the first is 1.
func (r *records) value(id int32, version uint32) []byte {
	return r.source.Value(uint64(id), uint64(version-1), r.size)
}

// load writes records that nobody reads yet, in one batch where there are batches.
func (r *records) load(rec *Recorder, info engine.Info, store engine.Store, ids []int32) error {
	pairs := func(yield func(key, value []byte) bool) {
		for _, id := range ids {
			if !yield(r.key(id), r.value(id, 1)) {
				return
			}
		}
	}
	if err := putPairs(rec, info, store, pairs); err != nil {
		return err
	}
	for _, id := range ids {
		r.begun[id].Store(1)
		r.acked[id].Store(1)
	}
	return nil
}

// check compares what was read for id with the versions it may have: those from
// low, which was acknowledged before the read began, to the newest begun by now.
func (r *records) check(id int32, low uint32, got []byte) error {
	high := r.begun[id].Load()
	for v := high; v >= max(low, 1); v-- {
		if bytes.Equal(got, r.value(id, v)) {
			return nil
		}
	}
	for v := low; v > 1; v-- {
		if bytes.Equal(got, r.value(id, v-1)) {
			return wrong("record %d: a stale value, version %d in place of %d to %d", id, v-1, low, high)
		}
	}
	return wrong("record %d: a wrong value of %d bytes, want version %d to %d", id, len(got), low, high)
}

// recordLookup reads records, for one goroutine.
type recordLookup struct {
	*records
	look *lookup
	low  uint32 // the version acknowledged when the read began
}

func (r *records) lookup() *recordLookup {
	l := &recordLookup{records: r}
	l.look = newLookup(func(id uint64, got []byte) error { return r.check(int32(id), l.low, got) })
	return l
}

func (l *recordLookup) read(store engine.Reader, id int32) error {
	l.low = l.acked[id].Load()
	return l.look.get(store, uint64(id), l.key(id))
}

func (r *records) update(store engine.Store, id int32) error {
	lock := &r.write[id%int32(len(r.write))]
	lock.Lock()
	defer lock.Unlock()
	return r.put(store, id)
}

// modify reads a record and writes its next version; nobody writes it in between.
func (l *recordLookup) modify(store engine.Store, id int32) error {
	lock := &l.write[id%int32(len(l.write))]
	lock.Lock()
	defer lock.Unlock()
	if err := l.read(store, id); err != nil {
		return err
	}
	return l.put(store, id)
}

// put writes the next version; the caller holds the record's lock or is alone.
func (r *records) put(store engine.Store, id int32) error {
	version := r.begun[id].Load() + 1
	r.begun[id].Store(version)
	if err := store.Put(r.key(id), r.value(id, version)); err != nil {
		return fmt.Errorf("put of record %d: %w", id, err)
	}
	r.acked[id].Store(version)
	return nil
}

// insert writes a record with a new key.
func (r *records) insert(store engine.Store) error {
	id := r.next.Add(1) - 1
	if int(id) >= len(r.rank) {
		return fmt.Errorf("record %d of %d: more inserts than were planned", id, len(r.rank))
	}
	if err := r.put(store, id); err != nil {
		return err
	}
	r.grow.Lock()
	defer r.grow.Unlock()
	r.since[id].Store(r.clock.Add(1))
	latest := r.latest.Load()
	for int(latest) < len(r.rank) && (int(latest) < r.loaded || r.since[latest].Load() > 0) {
		latest++
	}
	r.latest.Store(latest)
	return nil
}

// latestBut is the id some places before the newest of which all older ones are
// acknowledged.
func (r *records) latestBut(places int32) int32 { return max(0, r.latest.Load()-1-places) }

// scan reads up to n records from id on, in the order of keys, and checks that none
// is left out that was acknowledged before.
func (r *records) scan(store engine.Scanner, id int32, n int) error {
	now := r.clock.Load()
	rank, seen := r.rank[id], 0
	see := func(key, value []byte) error {
		at, ok := r.keys.ID(key)
		if !ok || at >= uint64(len(r.id)) || int32(at) < rank {
			return wrong("scan from record %d: key %q is none of this set, or not in order", id, key)
		}
		if err := r.noneBetween(rank, int32(at), now); err != nil {
			return err
		}
		rank = int32(at) + 1
		seen++
		found := r.id[at]
		return r.check(found, r.acked[found].Load(), value)
	}
	if err := store.Scan(r.key(id), n, see); err != nil {
		return err
	}
	if seen > n {
		return wrong("scan of %d records from record %d: %d came", n, id, seen)
	}
	if seen < n {
		return r.noneBetween(rank, int32(len(r.id)), now)
	}
	return nil
}

// noneBetween fails if a record of ranks low to high-1 was acknowledged at the time.
func (r *records) noneBetween(low, high int32, now uint32) error {
	for _, id := range r.id[low:high] {
		since := r.since[id].Load()
		if int(id) < r.loaded || (since > 0 && since <= now) {
			return wrong("scan: record %d is left out", id)
		}
	}
	return nil
}

// readAll reads every record there is; nobody writes meanwhile.
func (r *records) readAll(store engine.Reader) error {
	l := r.lookup()
	for id := range r.next.Load() {
		if err := l.read(store, id); err != nil {
			return err
		}
	}
	return nil
}

// exact walks all pairs of a store that can show them: every record there is, once, and no
// other; nobody writes meanwhile.
func (r *records) exact(store engine.Store) error {
	walker, ok := store.(engine.PairWalker)
	if !ok {
		return nil
	}
	seen, count := make([]bool, len(r.id)), int32(0)
	err := walker.Pairs(func(key, value []byte) error {
		rank, ok := r.keys.ID(key)
		if !ok || rank >= uint64(len(r.id)) || r.id[rank] >= r.next.Load() {
			return wrong("iteration: %q is no key of this set", key)
		}
		id := r.id[rank]
		if seen[id] {
			return wrong("iteration: record %d twice", id)
		}
		seen[id] = true
		count++
		return r.check(id, r.acked[id].Load(), value)
	})
	if err == nil && count != r.next.Load() {
		return wrong("iteration: %d records of %d", count, r.next.Load())
	}
	return err
}
