package harness

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
)

// plainEvery is the least time between two plain lines of progress.
const plainEvery = 15 * time.Second

// Progress shows on a terminal one line that is written over every second, elsewhere
// a plain line now and then. Trouble is always shown at once. A nil Progress is
// silent.
type Progress struct {
	out      io.Writer
	terminal bool

	mu        sync.Mutex // of everything below and of writing
	stop      chan struct{}
	started   time.Time     // of the run, with what earlier parts took
	budget    time.Duration // of the run; 0: no bound
	shown     time.Time
	syncDelay time.Duration
	total     int
	count     int
	left      time.Duration // estimates of the cells not yet done
	first     time.Duration // of these: in the first round, for which there is no bound
	expected  time.Duration // estimates of those done
	spent     time.Duration // what those took
	doing     string
	once      [][]time.Duration // by table and engine: the first round; nil until that ended
	guess     time.Duration     // estimate of the cell under way
	since     time.Time         // it began
}

// NewProgress writes to out, which is a terminal or not.
func NewProgress(out io.Writer, terminal bool) *Progress {
	return &Progress{out: out, terminal: terminal}
}

func (p *Progress) begin(plan *Plan, syncDelay time.Duration, started time.Time) {
	if p == nil {
		return
	}
	p.started, p.budget, p.syncDelay = started, plan.Budget, syncDelay
	p.shown = time.Now()
	p.left, p.first = plan.Estimate(syncDelay), plan.EstimateOnce(syncDelay)
	p.total = plan.Cells()
	if p.terminal {
		p.stop = make(chan struct{})
		go p.tick(p.stop)
	}
}

// replan is told what is left after some rounds, and what these have shown.
func (p *Progress) replan(plan *Plan, so tally) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total, p.left, p.first, p.expected, p.spent = plan.Cells(), 0, 0, 0, 0
	p.once = nil
	for t := range so.took {
		p.once = append(p.once, slices.Clone(so.took[t]))
		for e := range so.took[t] {
			p.left += time.Duration(max(0, plan.rounds(t, e)-so.did[t][e])) * so.took[t][e]
		}
	}
}

// estimate is what a cell should take, by the first round if there was one.
func (p *Progress) estimate(c cell) time.Duration {
	if p.once != nil {
		return p.once[c.table][c.engine]
	}
	return c.estimate(p.syncDelay)
}

// tick keeps the line alive while a cell runs.
func (p *Progress) tick(stop chan struct{}) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-stop:
			return
		case <-every.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// verifying shows that the sync calls of an engine are being counted.
func (p *Progress) verifying(one probing) {
	if p == nil {
		return
	}
	p.show("counting the sync calls of "+one.driver.Info.Name+onOff(one.sync), one.estimate(p.syncDelay))
}

// verified takes what that should have taken off the time left.
func (p *Progress) verified(one probing) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left -= one.estimate(p.syncDelay)
	p.first -= one.estimate(p.syncDelay)
	p.guess = 0
}

func onOff(sync bool) string {
	if sync {
		return ", sync on"
	}
	return ", sync off"
}

func (p *Progress) next(c cell) {
	if p == nil {
		return
	}
	what := fmt.Sprintf("round %d %s %s", c.round, c.driver.Info.Name, c.Params.ID())
	p.show(what, p.estimate(c))
}

func (p *Progress) show(what string, guess time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doing, p.guess, p.since = what, guess, time.Now()
	if p.terminal {
		p.draw()
	} else if time.Since(p.shown) >= plainEvery {
		p.shown = time.Now()
		fmt.Fprintln(p.out, p.line())
	}
}

func (p *Progress) draw() {
	if p.doing != "" {
		fmt.Fprintf(p.out, "\r\x1b[K%s", p.line())
	}
}

// barCells is the width of the bar.
const barCells = 16

func (p *Progress) line() string {
	full := 0
	if p.total > 0 {
		full = barCells * p.count / p.total
	}
	bar := strings.Repeat("#", full) + strings.Repeat(".", barCells-full)
	return fmt.Sprintf("[%s] %d/%d, about %s left, %s (%d s)", bar, min(p.count+1, p.total), p.total, Rough(p.timeLeft()), p.doing, int(time.Since(p.since).Seconds()))
}

// kept takes cells that an earlier part has done off what is left.
func (p *Progress) kept(cells []cell) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range cells {
		p.count++
		p.over(c)
	}
}

func (p *Progress) done(c cell, r result.Cell) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	p.expected += p.over(c)
	p.spent += r.Elapsed
	p.guess = 0
	if r.Status.Bad() {
		p.clear()
		fmt.Fprintf(p.out, "%s %s round %d: %s: %s\n", r.Engine, r.Workload, r.Round, r.Status, report.Printable(r.Reason))
	}
}

// over takes the estimate of a cell off what is left.
func (p *Progress) over(c cell) time.Duration {
	guess := p.estimate(c)
	p.left -= guess
	if c.round == 1 {
		p.first -= guess
	}
	return guess
}

// saving tells that what was measured could not be saved, and that it can again.
func (p *Progress) saving(why string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if why == "" {
		fmt.Fprintln(p.out, "cairn-bench: what was measured is saved again")
		return
	}
	fmt.Fprintf(p.out, "cairn-bench: warning: what was measured so far could not be saved, which is tried again later: %s\n", report.Printable(why))
}

func (p *Progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
	p.doing = ""
	p.clear()
}

func (p *Progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// timeLeft corrects the estimates by how far off they were until now, and counts
// the cell under way. Rounds that the budget does not hold are not made, but for the first.
func (p *Progress) timeLeft() time.Duration {
	factor, underWay := 1.0, time.Duration(0)
	if p.expected > 0 {
		factor = float64(p.spent) / float64(p.expected)
	}
	corrected := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	if p.guess > 0 {
		underWay = min(time.Since(p.since), corrected(p.guess))
	}
	left := corrected(p.left) - underWay
	if p.budget > 0 {
		left = min(left, max(corrected(p.first)-underWay, p.budget-time.Since(p.started), 0))
	}
	return left
}

// Rough prints a duration as people say it.
func Rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(1, int(d.Seconds()+0.5)))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
