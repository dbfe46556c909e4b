package crashtest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Run is one execution of a workload.
type Run struct {
	Disk    *memfs.FS
	Faults  *faultfs.FS // over Disk; what the store sees
	History *History
	From    int // first ordinal worth crashing at

	// OnError is told every error of a call. nil: the workload must not meet any.
	OnError func(call string, err error)

	// Live makes every commit of a single goroutine be followed, now and then, by a
	// look at everything.
	Live bool
	// StayOpen makes Close do nothing.
	StayOpen bool

	relaxed bool
	options cairn.Options // of the next Open
	store   *Store
	mu      sync.Mutex
	rand    *rand.Rand
	err     error // first error, if OnError is nil
}

// NewRun prepares a run on an empty disk. Equal seeds make equal values, not
// equal interleavings.
func NewRun(w *Workload, seed uint64) *Run {
	disk := memfs.New()
	if w.Mapped {
		disk.AllowMaps()
	}
	r := newRunOn(disk, w.Relaxed)
	r.rand = rand.New(rand.NewPCG(seed, 0xC0A5))
	return r
}

func newRunOn(disk *memfs.FS, relaxed bool) *Run {
	return &Run{
		Disk: disk, Faults: faultfs.New(disk), History: new(History), relaxed: relaxed, options: optionsOf(relaxed),
		rand: rand.New(rand.NewPCG(1, 0xC0A5)),
	}
}

// Do executes the workload. A store that it leaves open stays open.
func (r *Run) Do(w *Workload) error {
	w.Do(r)
	return r.err
}

// At returns the length of the journal.
func (r *Run) At() int { return r.Disk.Journal().Len() }

// Here makes this the first point worth crashing at.
func (r *Run) Here() { r.From = r.At() }

func (r *Run) note(call string, err error) bool {
	if err == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.OnError != nil {
		r.OnError(call, err)
	} else if r.err == nil {
		r.err = fmt.Errorf("%s: %w", call, err)
	}
	return false
}

// Open opens the store, if it is not open.
func (r *Run) Open() bool {
	if r.store != nil {
		return true
	}
	s, err := openAs(r.Faults, r.options)
	if !r.note("Open", err) {
		return false
	}
	r.resume(s)
	r.History.Synced(r.History.Acknowledged(), r.At()) // Open has seen to that
	return true
}

// resume goes on with a store that has just been opened.
func (r *Run) resume(s *Store) {
	r.store = s
	r.History.Resolve(r.At(), func(key string) (string, bool) {
		value, there, err := s.Get(key)
		return value, there || !r.note("Get", err)
	})
}

// Close closes the store, if it is open.
func (r *Run) Close() {
	if s := r.store; s != nil && !r.StayOpen {
		r.store = nil
		r.note("Close", s.Close())
	}
}

// Commit commits ops with the store's durability.
func (r *Run) Commit(ops ...Op) bool { return r.CommitAs(!r.relaxed, ops...) }

// CommitAs commits ops.
func (r *Run) CommitAs(durable bool, ops ...Op) bool {
	if r.store == nil {
		return false
	}
	c := r.History.Begin(durable, r.At(), ops...)
	seq, err := r.store.Commit(c.Ops, durable)
	r.History.End(c, seq, err, r.At())
	if r.Live && c.Tag%5 == 4 {
		r.look()
	}
	return r.note("Commit", err)
}

// look compares what the open store shows with what was acknowledged: no commit
// that failed, or whose outcome is unknown, may be seen.
func (r *Run) look() {
	r.History.order()
	want := r.History.state(len(r.History.sorted), nil)
	got, err := r.store.Contents()
	if r.note("Contents", err) {
		if err := diff(want, got); err != nil {
			r.note("live", fmt.Errorf("%w: %w", errWrong, err))
		}
	}
	for i := 0; i < len(want); i += 1 + len(want)/4 {
		v, ok, err := r.store.Get(want[i].Key)
		if r.note("Get", err) && (!ok || v != want[i].Value) {
			r.note("live", fmt.Errorf("%w: get of %q: %v %q", errWrong, want[i].Key, ok, v))
		}
	}
}

// errWrong is a wrong answer of a store that runs.
var errWrong = errors.New("wrong answer")

// Sync makes what was acknowledged durable.
func (r *Run) Sync() {
	if r.store == nil {
		return
	}
	known := r.History.Acknowledged()
	if r.note("Sync", r.store.Sync()) {
		r.History.Synced(known, r.At())
	}
}

// Compact flushes, and merges the keys in [low, high).
func (r *Run) Compact(low, high string) {
	if r.store != nil {
		r.note("Compact", r.store.Compact(low, high))
	}
}

// Rest makes no commit for a while: the store comes to rest.
func (r *Run) Rest() {
	if r.store != nil {
		r.store.Rest()
	}
}

// LogBytes returns how much is in the log and not in tables.
func (r *Run) LogBytes() int64 {
	if r.store == nil {
		return 0
	}
	return r.store.LogBytes()
}

// WhileScanned does script while somebody scans the store again and again.
func (r *Run) WhileScanned(script func()) {
	s := r.store
	if s == nil {
		return
	}
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for open := true; open && err == nil; {
			select {
			case <-stop:
				open = false
			default:
				err = s.Walk()
			}
		}
		stopped <- err
	}()
	script()
	close(stop)
	r.note("Walk", <-stopped)
}

// SlowSync makes syncs of log segments take so long that commits gather behind them.
func (r *Run) SlowSync() {
	r.Faults.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true, Do: faultfs.Delay(200 * time.Microsecond)})
}

// Int returns a number below n.
func (r *Run) Int(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rand.IntN(n)
}

// Value returns n characters that compress little.
func (r *Run) Value(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := make([]byte, (n+1)/2)
	for i := range b {
		b[i] = byte(r.rand.Uint32())
	}
	return hex.EncodeToString(b)[:n]
}

// Put returns a put of a value of n characters.
func (r *Run) Put(key string, n int) Op { return Op{base.KindPut, key, r.Value(n)} }

// Delete returns a delete.
func Delete(key string) Op { return Op{Kind: base.KindDelete, Key: key} }

// DeleteRange returns the removal of the keys in [low, high).
func DeleteRange(low, high string) Op { return Op{base.KindRangeDelete, low, high} }
