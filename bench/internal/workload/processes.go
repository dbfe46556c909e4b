package workload

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/peer"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "processes",
		Title:      "W0 processes: one process writes while three others read the same store",
		Variant:    "sound",
		FullOnly:   true,
		QuickN:     []int{500},
		ValueBytes: 100,
		Unfit:      madeRecords,
		Conditions: processesConditions,
		Columns:    processesColumns,
		Estimate:   processesEstimate,
		Run:        runProcesses,
		Processes:  true,
		Commits:    []CommitKind{PutCommits},
		Vary: func(p Params, _ Scale) []Params {
			p.Processes = 1 + readerProcesses
			return []Params{p}
		},
	})
	peer.Register("writer", func(s *peer.Self) error { return takePart(s, (*participant).write) })
	peer.Register("reader", func(s *peer.Self) error { return takePart(s, (*participant).read) })
}

const (
	processOps      = 5000
	readerProcesses = 3
	readsAtOnce     = 50 // before a reader looks whether it is told something
	// openPatience is how long the writer waits for the readers to open, before it
	// begins without them.
	openPatience = time.Second
	// readersMost is how long readers read at most, and are waited for when they have enough.
	readersMost = 5 * time.Minute
)

var processesColumns = []result.Column{
	{Key: "write", Title: "write", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "read", Title: "read", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "reader_open", Title: "reader's open", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "together", Title: "readers beside writer", Group: "time", Unit: result.Number},
	{Key: "newest", Title: "newest seen", Group: "time", Unit: result.Number},
}

func processesConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d pairs are put and the store closed; then one process puts %d times, over all keys in turn, and %d processes get keys, all real processes, the readers opening after the writer: they read before it begins and until it has ended, %d gets each at least", p.N, processOps, readerProcesses, processOps),
		"each put is a commit of its own" + syncCondition(p.Sync) + "; readers ask for a read-only open where the engine has one",
		"every value read must be one the writer can have written, and none older than this reader saw before; at the end the store is opened again and the last value of every key read",
		fmt.Sprintf("readers beside writer = how many had opened the store while the writer had it open (it waits %s for them); the others waited for its close, and read then; write, read and reader's open have figures only where all %d were beside it", openPatience, readerProcesses),
		fmt.Sprintf("newest seen = the newest version of any key the readers saw, of at most %d; read and reader's open are the slowest reader's", lastVersion(0, max(1, p.N))),
	}
}

func processesEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	total := 3*time.Second + processOps*20*time.Microsecond
	if p.Sync && e.Can(engine.CanSync) {
		total += time.Duration(processOps+p.N) * syncDelay * 3 / 2
	}
	return total
}

// part is what a process is told to do.
type part struct {
	Engine string
	Dir    string
	Params Params
}

// account is what it answers: once when it has the store open, once at the end.
type account struct {
	Opened   time.Duration
	Took     time.Duration
	Gets     int  // of a reader, in that time
	Enough   bool // a reader was told that it is
	Newest   uint64
	WrongWhy string
	Failed   string // in the engine's words
}

func runProcesses(rec *Recorder, d engine.Driver, dir string, p Params) error {
	rec.None("four processes: not one figure", result.PeakRSS, result.CPU, result.Written)
	if why := d.Info.Cannot[engine.CanDisk]; why != "" {
		for _, c := range processesColumns {
			rec.None(why, c.Key)
		}
		return nil
	}
	e := expect(p)
	if err := e.fill(d, dir, p); err != nil {
		return err
	}
	g := &gathering{rec: rec, order: part{d.Info.Name, dir, p}}
	err := g.run()
	g.kill()
	if err != nil {
		return err
	}
	last := newMixed(e, nil)
	for id := range e.n {
		last.versions[id] = lastVersion(id, e.n)
	}
	return last.reread(d, dir, p)
}

// lastVersion is how many of the writer's puts are of key id.
func lastVersion(id, n int) uint64 { return uint64(max(0, processOps-id+n-1) / n) }

// fill puts every key once and closes the store. It is not timed.
func (e *expectation) fill(d engine.Driver, dir string, p Params) error {
	store, err := d.Open(dir, p.options())
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for i := range e.n {
		if err := store.Put(e.keys.At(i), e.value(uint64(i))); err != nil {
			return fmt.Errorf("put of key %d: %w", i, err)
		}
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// participant is one of the processes.
type participant struct {
	*expectation
	store    engine.Store
	commands <-chan string
	seen     []uint64 // newest version of each key this reader saw
	acc      account
}

func takePart(self *peer.Self, work func(*participant) error) error {
	var o part
	if err := self.Order(&o); err != nil {
		return err
	}
	d, err := engine.Find(o.Engine)
	if err != nil {
		return err
	}
	p := &participant{expectation: expect(o.Params), commands: self.Commands}
	p.seen = make([]uint64, p.n)
	if err := self.Say(account{}); err != nil { // prepared
		return err
	}
	opts := o.Params.options()
	opts.ReadOnly = <-self.Commands == "open to read"
	start := time.Now()
	if p.store, err = d.Open(o.Dir, opts); err != nil {
		return self.Say(account{Failed: "open: " + strings.ReplaceAll(err.Error(), o.Dir, "STORE")})
	}
	p.acc.Opened = time.Since(start)
	if err := self.Say(p.acc); err != nil {
		return err
	}
	<-self.Commands
	if opts.ReadOnly { // the writer begins when its readers read
		if err := self.Say(account{}); err != nil {
			return err
		}
	}
	start = time.Now()
	err = work(p)
	p.acc.Took = time.Since(start)
	err = errors.Join(err, p.store.Close())
	var wrongAnswer *WrongAnswer
	switch {
	case errors.As(err, &wrongAnswer):
		p.acc.WrongWhy = wrongAnswer.What
	case err != nil:
		p.acc.Failed = err.Error()
	}
	return self.Say(p.acc)
}

func (p *participant) write() error {
	for j := range processOps {
		id := j % p.n
		if err := p.store.Put(p.keys.At(id), p.source.Value(uint64(id), uint64(1+j/p.n), p.size)); err != nil {
			return fmt.Errorf("put %d: %w", j, err)
		}
	}
	return nil
}

// read gets keys until it is told that it is enough, but processOps of them at least, and no
// longer than readersMost.
func (p *participant) read() error {
	look := newLookup(p.plausible)
	for start := time.Now(); time.Since(start) < readersMost; {
		if p.acc.Enough = len(p.commands) > 0; p.acc.Enough && p.acc.Gets >= processOps {
			return nil
		}
		for range readsAtOnce {
			id := uint64(p.acc.Gets*7919) % uint64(p.n)
			if err := look.get(p.store, id, p.keys.At(int(id))); err != nil {
				return err
			}
			p.acc.Gets++
		}
	}
	return nil
}

// plausible: a version the writer writes, and not older than one seen before, at which it begins to look, since what the
// check takes is counted to the read.
func (p *participant) plausible(id uint64, got []byte) error {
	is := func(v uint64) bool { return bytes.Equal(got, p.source.Value(id, v, p.size)) }
	for v := p.seen[id]; v <= lastVersion(int(id), p.n); v++ {
		if is(v) {
			p.seen[id] = v
			p.acc.Newest = max(p.acc.Newest, v)
			return nil
		}
	}
	for v := range p.seen[id] {
		if is(v) {
			return wrong("a reader: key %d: version %d after version %d", id, v, p.seen[id])
		}
	}
	return wrong("a reader: key %d: %d bytes that were never written", id, len(got))
}
