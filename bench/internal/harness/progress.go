package harness

import (
	"fmt"
	"io"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// plainEvery is the least time between two plain lines of progress.
const plainEvery = 15 * time.Second

// Progress shows on a terminal one line that is written over, elsewhere a plain
// line now and then. Trouble is always shown at once. A nil Progress is silent.
type Progress struct {
	out       io.Writer
	terminal  bool
	started   time.Time
	shown     time.Time
	syncDelay time.Duration
	total     int
	count     int
	left      time.Duration // estimates of the cells not yet done
	expected  time.Duration // estimates of those done
	spent     time.Duration // what those took
}

// NewProgress writes to out, which is a terminal or not.
func NewProgress(out io.Writer, terminal bool) *Progress {
	return &Progress{out: out, terminal: terminal}
}

func (p *Progress) begin(plan *Plan, syncDelay time.Duration) {
	if p == nil {
		return
	}
	p.started, p.syncDelay = time.Now(), syncDelay
	p.shown = p.started
	p.left = plan.Estimate(syncDelay)
	p.total = plan.Cells()
}

func (p *Progress) next(c cell) {
	if p == nil {
		return
	}
	line := fmt.Sprintf("[%d/%d] round %d %s %s, %s left", p.count+1, p.total, c.round, c.driver.Info.Name, c.Params.ID(), p.timeLeft())
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
		return
	}
	if time.Since(p.shown) >= plainEvery {
		p.shown = time.Now()
		fmt.Fprintln(p.out, line)
	}
}

func (p *Progress) done(c cell, r result.Cell) {
	if p == nil {
		return
	}
	p.count++
	guess := c.estimate(p.syncDelay)
	p.left -= guess
	p.expected += guess
	p.spent += r.Elapsed
	if r.Status.Bad() {
		p.clear()
		fmt.Fprintf(p.out, "%s %s round %d: %s: %s\n", r.Engine, r.Workload, r.Round, r.Status, r.Reason)
	}
}

func (p *Progress) end() {
	if p != nil {
		p.clear()
	}
}

func (p *Progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// timeLeft corrects the estimates by how far off they were until now.
func (p *Progress) timeLeft() string {
	left := p.left
	if p.expected > 0 {
		left = time.Duration(float64(left) * float64(p.spent) / float64(p.expected))
	}
	return "about " + Rough(left)
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
