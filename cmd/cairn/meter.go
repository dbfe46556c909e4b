package main

import (
	"sync"
	"time"

	"github.com/cairndb/cairn/vfs"
	"github.com/schollz/progressbar/v3"
)

const (
	// meterDelay is how long work goes on before its progress is worth a line.
	meterDelay = 500 * time.Millisecond
	// meterPause is the least time between two updates of the line.
	meterPause = 100 * time.Millisecond
)

// meter shows the progress of long work on standard error, if that is a terminal.
// It is safe for concurrent use.
type meter struct {
	app   *app
	title string
	from  time.Time // not before

	mu   sync.Mutex
	bar  *progressbar.ProgressBar // nil until there is something to show
	done int64
}

func (a *app) meter(title string) *meter {
	return &meter{app: a, title: title, from: time.Now().Add(meterDelay)}
}

// set shows that done of total bytes are done.
func (m *meter) set(done, total int64) {
	if !m.app.errIsTTY || total <= 0 || time.Now().Before(m.from) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar == nil {
		m.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(m.app.err),
			progressbar.OptionSetDescription(m.title), progressbar.OptionShowBytes(true),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(meterPause))
	}
	_ = m.bar.Set64(min(done, total))
}

// add is set for work that is told piece by piece.
func (m *meter) add(n, total int64) {
	m.mu.Lock()
	m.done += n
	done := m.done
	m.mu.Unlock()
	m.set(done, total)
}

// clear takes the line away.
func (m *meter) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar != nil {
		_ = m.bar.Clear()
		m.bar = nil
	}
}

// countingFS tells how much is read from files: Verify reads every byte of every
// table once, so that is its progress, near enough. What background work reads at
// the same time makes it look a little ahead. read is called by many goroutines.
type countingFS struct {
	vfs.FS
	read func(n int)
}

// Open opens a file whose reads are counted.
func (c *countingFS) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &countingFile{f, c.read}, nil
}

type countingFile struct {
	vfs.File
	read func(n int)
}

func (c *countingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := c.File.ReadAt(b, off)
	c.read(n)
	return n, err
}
