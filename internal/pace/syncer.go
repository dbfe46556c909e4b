package pace

import (
	"sync"
	"time"
)

// Syncer makes relaxed commits durable every so often. After long quiet it waits until the next commit tells it, and looks
// no more. The exported fields are set before Run.
type Syncer struct {
	Commits *sync.Mutex   // the commit lock
	Newest  func() uint64 // the newest sequence given out; the commit lock is held
	Visible func() uint64 // the newest that is visible
	Sync    func() error  // what has been written by now

	awaits bool // guarded by the commit lock
	wake   chan struct{}
}

// Init makes s ready for Committed.
func (s *Syncer) Init() { s.wake = make(chan struct{}, 1) }

// Committed tells s of a commit. The commit lock is held.
func (s *Syncer) Committed() {
	if s.awaits {
		s.awaits = false
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Run syncs at each interval, of a millisecond at least, until stop is closed, and waits for a commit where there has been
// none for asleepAfter.
func (s *Syncer) Run(interval, asleepAfter time.Duration, stop <-chan struct{}) {
	interval = max(interval, time.Millisecond)
	t := time.NewTicker(interval)
	defer t.Stop()
	q := Quiet{Long: RestAfter}
	for {
		select {
		case <-stop:
			return
		case <-t.C:
		}
		seq := s.Visible()
		if err := s.Sync(); err != nil {
			continue
		}
		if q.Look(seq, false); q.Idle(asleepAfter) && s.await(seq, stop) {
			t.Reset(interval)
		}
	}
}

// await waits for a commit, if there is none after seq, or until stop is closed, and reports whether it did.
func (s *Syncer) await(seq uint64, stop <-chan struct{}) bool {
	s.Commits.Lock()
	wait := s.Newest() == seq
	s.awaits = wait
	s.Commits.Unlock()
	if wait {
		select {
		case <-stop:
		case <-s.wake:
		}
	}
	return wait
}

// Awaits reports whether it waits for a commit.
func (s *Syncer) Awaits() bool {
	s.Commits.Lock()
	defer s.Commits.Unlock()
	return s.awaits
}
