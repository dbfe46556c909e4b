package workload

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/bench/internal/peer"
)

// gathering is the side of the processes workload that starts the others.
type gathering struct {
	rec     *Recorder
	order   part
	writer  *peer.Process
	readers []*peer.Process
}

// heard is an answer of a process, or how it ended without one.
type heard struct {
	reader int
	account
	err error
}

func (g *gathering) run() error {
	if err := g.start(); err != nil {
		return err
	}
	if err := g.writer.Tell("open"); err != nil {
		return err
	}
	if err := g.hearWriter(nil); err != nil {
		return err
	}
	opened := make(chan heard, readerProcesses)
	for i, r := range g.readers {
		if err := r.Tell("open to read"); err != nil {
			return err
		}
		go func() { opened <- hear(r, i) }()
	}
	early, together := collect(opened, readerProcesses, openPatience)
	ended := make(chan heard, readerProcesses)
	g.begin(early, ended) // before the writer, and until it has ended
	if err := g.writer.Tell("go"); err != nil {
		return err
	}
	var wrote account
	if err := g.hearWriter(&wrote); err != nil {
		return err
	}
	g.enough(early)
	g.rec.Set("together", float64(together))
	late := g.comeLate(opened, readerProcesses-len(early), ended)
	if len(late) > 0 && together == 0 {
		g.rec.Note("its readers had to wait until the writer had closed the store")
	}
	beside, err := g.readersEnd(append(early, late...), ended)
	if err != nil {
		return err
	}
	if !beside || together < readerProcesses {
		for _, key := range []string{"write", "read", "reader_open"} {
			if _, failed := g.rec.NA[key]; !failed {
				g.rec.None("its readers were not beside the writer", key)
			}
		}
		return nil
	}
	g.rec.Set("write", float64(wrote.Took)/processOps)
	if g.rec.Metrics["newest"] == 0 {
		g.rec.Note("its readers saw nothing the writer wrote while they had the store open")
	}
	return nil
}

// comeLate lets up to n readers read that could open when the writer had ended. Each begins
// when it has opened, and has enough when it has read so much: one may shut the next one out.
func (g *gathering) comeLate(opened <-chan heard, n int, ended chan<- heard) (late []heard) {
	for len(late) < n {
		one, _ := collect(opened, 1, time.Minute)
		if len(one) == 0 {
			break
		}
		g.begin(one, ended)
		g.enough(one)
		late = append(late, one...)
	}
	return late
}

// start brings all processes to where they only have to open the store.
func (g *gathering) start() (err error) {
	if g.writer, err = peer.Start("writer", g.order); err != nil {
		return err
	}
	for range readerProcesses {
		r, err := peer.Start("reader", g.order)
		if err != nil {
			return err
		}
		g.readers = append(g.readers, r)
	}
	for _, p := range append([]*peer.Process{g.writer}, g.readers...) {
		if err := p.Hear(&account{}); err != nil {
			return fmt.Errorf("starting a process: %w", err)
		}
	}
	return nil
}

func (g *gathering) hearWriter(into *account) error {
	h := hear(g.writer, 0)
	if err := h.failure(); err != nil {
		return fmt.Errorf("the writer: %w", err)
	}
	if into != nil {
		*into = h.account
	}
	return nil
}

func hear(p *peer.Process, reader int) heard {
	h := heard{reader: reader}
	h.err = p.Hear(&h.account)
	return h
}

func (h heard) failure() error {
	switch {
	case h.err != nil:
		return h.err
	case h.WrongWhy != "":
		return &WrongAnswer{h.WrongWhy}
	case h.Failed != "":
		return fmt.Errorf("%s", h.Failed)
	}
	return nil
}

// collect takes up to n answers for as long as patience lasts; ok counts those
// without failure.
func collect(from <-chan heard, n int, patience time.Duration) (all []heard, ok int) {
	deadline := time.After(patience)
	for len(all) < n {
		select {
		case h := <-from:
			all = append(all, h)
			if h.failure() == nil {
				ok++
			}
		case <-deadline:
			return all, ok
		}
	}
	return all, ok
}

// begin lets the readers that have the store open read, and returns when they do.
func (g *gathering) begin(open []heard, ended chan<- heard) {
	for _, h := range open {
		if h.failure() != nil {
			continue
		}
		r := g.readers[h.reader]
		err := r.Tell("go")
		if err == nil {
			err = r.Hear(&account{})
		}
		if err != nil {
			ended <- heard{reader: h.reader, err: err}
			continue
		}
		go func() { ended <- hear(r, h.reader) }()
	}
}

// enough tells readers that the writer has ended. One that cannot be told has ended too.
func (g *gathering) enough(open []heard) {
	for _, h := range open {
		_ = g.readers[h.reader].Tell("enough")
	}
}

// readersEnd sums the readers up, and reports whether all read until they were told that it
// is enough. One that failed takes the readers' figures away; one that read something wrong
// voids the cell.
func (g *gathering) readersEnd(opened []heard, ended <-chan heard) (all bool, err error) {
	var failed string
	var slowestOpen time.Duration
	reading := 0
	for _, h := range opened {
		if err := h.failure(); err != nil {
			failed = "a reader in another process: " + err.Error()
			continue
		}
		slowestOpen = max(slowestOpen, h.Opened)
		reading++
	}
	if missing := readerProcesses - len(opened); missing > 0 {
		failed = "a reader in another process: its open did not return within a minute after the writer had ended"
	}
	answers, _ := collect(ended, reading, readersMost)
	slowest, newest := 0.0, uint64(0)
	all = true
	for _, h := range answers {
		if h.WrongWhy != "" {
			return false, h.failure()
		}
		if err := h.failure(); err != nil {
			failed = "a reader in another process: " + err.Error()
		}
		slowest, newest = max(slowest, float64(h.Took)/float64(max(1, h.Gets))), max(newest, h.Newest)
		all = all && h.Enough
	}
	if len(answers) < reading {
		failed = "a reader in another process did not end"
	}
	if failed != "" {
		g.rec.None(failed, "read", "reader_open", "newest")
		return false, nil
	}
	g.rec.Set("read", slowest)
	g.rec.Set("reader_open", float64(slowestOpen))
	g.rec.Set("newest", float64(newest))
	return all, nil
}

// kill ends what still runs.
func (g *gathering) kill() {
	all := g.readers
	if g.writer != nil {
		all = append(all, g.writer)
	}
	for _, p := range all {
		p.Kill()
		_ = p.Wait() // one that is ending may still hold the lock of the store
	}
}
