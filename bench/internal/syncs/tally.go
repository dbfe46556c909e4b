package syncs

import (
	"maps"
	"time"
)

// Hold is how long a sync waits for an acknowledgement that does not wait for it.
const Hold = time.Millisecond

// Kind says what sort of commit is counted; its names are the caller's.
type Kind uint8

// Count is what was seen of one kind of commit.
type Count struct {
	Commits int // acknowledged
	Durable int // of these: with a sync of their own or a shared one before the acknowledgement
	Syncs   int // sync calls while such a commit was under way
}

// Report is what a Tracer saw.
type Report struct {
	Kinds     map[Kind]Count
	Calls     map[string]int // sync calls on the store, by name
	Outside   int            // of these: outside any commit
	Elsewhere int            // sync calls on other files
	Ranges    int            // sync_file_range, which makes nothing durable
	Ring      bool           // the child set up asynchronous I/O whose syncs are no calls
}

// Total is the number of sync calls of the child, whatever they were for.
func (r Report) Total() int {
	total := r.Elsewhere
	for n := range maps.Values(r.Calls) {
		total += n
	}
	return total
}

// tally keeps the commits that are under way. Time is the order of events.
type tally struct {
	now    int
	open   map[uint64]*commit
	report Report
}

type commit struct {
	kind    Kind
	began   int
	durable bool
}

func newTally() *tally {
	return &tally{open: map[uint64]*commit{}, report: Report{Kinds: map[Kind]Count{}, Calls: map[string]int{}}}
}

func (t *tally) begin(kind Kind, id uint64) {
	t.now++
	t.open[id] = &commit{kind: kind, began: t.now}
}

func (t *tally) end(id uint64) {
	t.now++
	c := t.open[id]
	if c == nil {
		return
	}
	delete(t.open, id)
	count := t.report.Kinds[c.kind]
	count.Commits++
	if c.durable {
		count.Durable++
	}
	t.report.Kinds[c.kind] = count
}

// syncBegins returns the moment, to be given to syncEnds.
func (t *tally) syncBegins(name string) int {
	t.now++
	t.report.Calls[name]++
	busy := map[Kind]bool{}
	for _, c := range t.open {
		busy[c.kind] = true
	}
	for kind := range busy {
		count := t.report.Kinds[kind]
		count.Syncs++
		t.report.Kinds[kind] = count
	}
	if len(busy) == 0 {
		t.report.Outside++
	}
	return t.now
}

func (t *tally) syncEnds(began int) {
	for _, c := range t.open {
		if c.began < began {
			c.durable = true
		}
	}
}
