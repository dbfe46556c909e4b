package crashtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/cairndb/cairn/internal/base"
)

// Op is one write of a transaction. A range delete has its end in Value.
type Op struct {
	Kind       base.Kind
	Key, Value string
}

// never is an ordinal no journal reaches.
const never = math.MaxInt

// Commit is one transaction and what was said about it, with the length of the
// journal at each moment.
type Commit struct {
	Tag     int
	Ops     []Op // the first puts tagKey(Tag)
	Durable bool

	Seq     uint64 // order of commits; 0 if it failed
	Begun   int    // before Commit was called
	Told    int    // Commit had returned
	Synced  int    // durability had been promised; never: not
	Err     error  // what Commit returned
	Unknown bool   // it failed with an unknown outcome
}

func tagKey(tag int) string { return fmt.Sprintf("tag/%05d", tag) }

// History is what a workload has committed.
type History struct {
	mu       sync.Mutex
	commits  []*Commit
	firstTag int       // of commits made now: those of an earlier life have smaller ones
	sorted   []*Commit // successful ones by sequence; built by order
	failed   []*Commit // the others, by tag
	byTag    map[string]*Commit
	states   map[string][]Pair // by which commits were applied
}

// Begin notes that a commit is about to be made and gives it a tag.
func (h *History) Begin(durable bool, at int, ops ...Op) *Commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &Commit{Tag: h.firstTag + len(h.commits), Durable: durable, Begun: at, Told: never, Synced: never}
	c.Ops = append([]Op{{base.KindPut, tagKey(c.Tag), fmt.Sprint(c.Tag)}}, ops...)
	h.commits = append(h.commits, c)
	return c
}

// End notes the outcome. at is the length of the journal now.
func (h *History) End(c *Commit, seq uint64, err error, at int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.Told, c.Err, c.Unknown = at, err, errors.Is(err, base.ErrCommitUnknown)
	if err == nil {
		c.Seq = seq
		if c.Durable {
			c.Synced = at
		}
	}
}

// Synced notes that a Sync, begun when the history had `known` commits told, has
// returned.
func (h *History) Synced(known []*Commit, at int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range known {
		c.Synced = min(c.Synced, at)
	}
}

// Resolve settles the commits of unknown outcome once the store has been opened
// again: they are there, for good, or will never be. get returns what the store has.
func (h *History) Resolve(at int, get func(key string) (value string, there bool)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := uint64(0)
	var there []*Commit
	for _, c := range h.commits {
		last = max(last, c.Seq)
		if !c.Unknown {
			continue
		}
		c.Unknown, c.Told = false, at
		if _, ok := get(tagKey(c.Tag)); ok {
			c.Err, c.Synced = nil, at
			there = append(there, c)
		}
	}
	settleOrder(there, last, get)
}

// Acknowledged returns the commits that have succeeded up to now.
func (h *History) Acknowledged() (done []*Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.commits {
		if c.Told != never && c.Err == nil {
			done = append(done, c)
		}
	}
	return done
}

// order closes the history: commits in the order of their sequences, and the others.
func (h *History) order() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sorted, h.failed = nil, nil
	h.byTag, h.states = map[string]*Commit{}, map[string][]Pair{}
	for _, c := range h.commits {
		h.byTag[tagKey(c.Tag)] = c
		if c.Err == nil && c.Told != never {
			h.sorted = append(h.sorted, c)
		} else {
			h.failed = append(h.failed, c)
		}
	}
	slices.SortFunc(h.sorted, func(a, b *Commit) int { return cmp.Compare(a.Seq, b.Seq) })
}

// Recovered returns the history of a store that was found to hold f: nothing of it
// may ever get lost again, and nothing else may ever turn up.
func (h *History) Recovered(f *Found) *History {
	next := new(History)
	for _, c := range append(slices.Clip(h.sorted[:f.Prefix]), f.Extra...) {
		twin := *c
		twin.Begun, twin.Told, twin.Synced, twin.Err, twin.Unknown = -1, 0, 0, nil, false
		next.commits = append(next.commits, &twin)
	}
	settleOrder(next.commits[f.Prefix:], f.lastSeq(h), f.get)
	next.firstTag = len(h.commits) + h.firstTag
	return next
}

// state returns what the first p successful commits, and then extra, leave.
func (h *History) state(p int, extra []*Commit) []Pair {
	key := fmt.Sprint(p)
	for _, c := range extra {
		key += fmt.Sprint("+", c.Tag)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, ok := h.states[key]; ok {
		return s
	}
	m := map[string]string{}
	for _, c := range append(slices.Clip(h.sorted[:p]), extra...) {
		c.apply(m)
	}
	s := make([]Pair, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		s = append(s, Pair{k, m[k]})
	}
	h.states[key] = s
	return s
}

func (c *Commit) apply(m map[string]string) {
	for _, op := range c.Ops {
		switch op.Kind {
		case base.KindPut:
			m[op.Key] = op.Value
		case base.KindDelete:
			delete(m, op.Key)
		case base.KindRangeDelete:
			maps.DeleteFunc(m, func(k, _ string) bool { return k >= op.Key && k < op.Value })
		}
	}
}
