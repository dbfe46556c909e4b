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
	if err := g.writer.Tell("go"); err != nil {
		return err
	}
	ended := make(chan heard, readerProcesses)
	g.begin(early, ended)
	var wrote account
	if err := g.hearWriter(&wrote); err != nil {
		return err
	}
	g.rec.Set("write", float64(wrote.Took)/processOps)
	g.rec.Set("together", float64(together))
	// Each late reader begins when it has opened: one may shut the next one out.
	var late []heard
	for len(early)+len(late) < readerProcesses {
		one, _ := collect(opened, 1, time.Minute)
		if len(one) == 0 {
			break
		}
		g.begin(one, ended)
		late = append(late, one...)
	}
	if len(late) > 0 && together == 0 {
		g.rec.Note("its readers had to wait until the writer had closed the store")
	}
	return g.readersEnd(append(early, late...), ended)
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

// begin lets the readers that have the store open read.
func (g *gathering) begin(open []heard, ended chan<- heard) {
	for _, h := range open {
		if h.failure() != nil {
			continue
		}
		r := g.readers[h.reader]
		if err := r.Tell("go"); err != nil {
			ended <- heard{reader: h.reader, err: err}
			continue
		}
		go func() { ended <- hear(r, h.reader) }()
	}
}

// readersEnd sums the readers up. One that failed takes the readers' figures away;
// one that read something wrong voids the cell.
func (g *gathering) readersEnd(opened []heard, ended <-chan heard) error {
	var failed string
	var slowestOpen, slowest time.Duration
	var newest uint64
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
	all, _ := collect(ended, reading, 5*time.Minute)
	for _, h := range all {
		if h.WrongWhy != "" {
			return h.failure()
		}
		if err := h.failure(); err != nil {
			failed = "a reader in another process: " + err.Error()
		}
		slowest, newest = max(slowest, h.Took), max(newest, h.Newest)
	}
	if len(all) < reading {
		failed = "a reader in another process did not end"
	}
	if failed != "" {
		g.rec.None(failed, "read", "reader_open", "newest")
		return nil
	}
	g.rec.Set("read", float64(slowest)/processOps)
	g.rec.Set("reader_open", float64(slowestOpen))
	g.rec.Set("newest", float64(newest))
	if newest == 0 {
		g.rec.Note("its readers saw nothing the writer wrote while they had the store open")
	}
	return nil
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
