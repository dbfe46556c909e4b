package group

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeLog notes what the queue asks of it.
type fakeLog struct {
	mu       sync.Mutex
	q        Queue
	appended uint64 // the last sequence
	begun    uint64 // of the round
	written  uint64
	synced   uint64
	shown    uint64
	syncs    int
	calls    []string

	writing  chan struct{} // if not nil, Write waits for it
	writeErr error
	syncErr  error
	showErr  error
	syncTime time.Duration // in which others may come
}

func newFakeLog() *fakeLog {
	l := &fakeLog{}
	l.q.Lock, l.q.Changed, l.q.Log = &l.mu, sync.NewCond(&l.mu), l
	return l
}

func (l *fakeLog) note(format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *fakeLog) Begin() {
	l.begun = l.appended
	l.note("begin %d", l.begun)
}

func (l *fakeLog) Write() error {
	if l.writing != nil {
		<-l.writing
	}
	if l.writeErr == nil {
		l.written = l.begun
	}
	return l.writeErr
}

func (l *fakeLog) Sync() error {
	time.Sleep(l.syncTime)
	l.syncs++
	return l.syncErr
}

func (l *fakeLog) Synced() { l.synced = l.written }

func (l *fakeLog) Show(round []*Commit) error {
	for _, c := range round {
		if c.Last != l.shown+1 || c.Last > l.written || c.Durable && c.Last > l.synced {
			panic(fmt.Sprintf("%d shown after %d, written up to %d, synced up to %d", c.Last, l.shown, l.written, l.synced))
		}
		if c.Shown != nil {
			c.Shown()
		}
		l.shown = c.Last
	}
	l.note("show %d", l.shown)
	return l.showErr
}

func (l *fakeLog) WriteFailed(round []*Commit, why error) {
	l.note("write failed: %d, behind them %d", len(round), l.q.Waiting())
	l.q.Conclude(append(round, l.q.Take()...), why)
	l.appended = l.shown
}

func (l *fakeLog) SyncFailed(round []*Commit, why error) {
	l.note("sync failed: %d", len(round))
	l.q.Conclude(round, why)
}

// commit appends a commit and returns its outcome.
func (l *fakeLog) commit(c *Commit, durable bool) error {
	l.q.Inside.Add(1)
	defer l.q.Inside.Add(-1)
	l.mu.Lock()
	c.Renew(durable)
	l.appended++
	c.Last = l.appended
	l.q.Add(c)
	return l.q.Await(c)
}

// group commits while a round is held up, in this order, and returns their outcomes and the calls since.
func (l *fakeLog) group(t *testing.T, commits ...*Commit) (errs []error) {
	l.writing = make(chan struct{})
	first := make(chan error)
	go func() { first <- l.commit(&Commit{}, false) }()
	l.await(t, func() bool { return l.q.Leading() })
	errs = make([]error, len(commits))
	var waiting sync.WaitGroup
	for i, c := range commits {
		waiting.Go(func() { errs[i] = l.commit(c, c.Durable) })
		l.await(t, func() bool { return l.q.Waiting() == i+1 })
	}
	l.calls = nil
	close(l.writing)
	<-first
	waiting.Wait()
	return errs
}

func (l *fakeLog) await(t *testing.T, holds func() bool) {
	t.Helper()
	for range 5000 {
		l.mu.Lock()
		ok := holds()
		l.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("waited in vain")
}

// What comes while a round is under way is the next one: written and synced once. Those in front that need no
// sync do not wait for it.
func TestRound(t *testing.T) {
	l := newFakeLog()
	for _, err := range l.group(t, &Commit{}, &Commit{}, &Commit{Durable: true}, &Commit{}, &Commit{Durable: true}) {
		if err != nil {
			t.Error(err)
		}
	}
	want := "show 1; begin 6; show 3; show 6"
	if got := strings.Join(l.calls, "; "); got != want || l.syncs != 1 {
		t.Errorf("%s, %d syncs\nwant %s, 1", got, l.syncs, want)
	}
}

// Who could not be written, and who waited behind, gets the error, and is told so before; who could not be synced
// likewise, but not those before that need no sync.
func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		write, sync error
		fails       string // which of the commits
		calls       string
	}{
		{boom, nil, "[true true true]", "write failed: 1, behind them 3"},
		{nil, boom, "[false true true]", "show 1; begin 4; show 2; sync failed: 2"},
	} {
		l := newFakeLog()
		l.writeErr, l.syncErr = c.write, c.sync
		told := make([]bool, 3)
		var commits []*Commit
		for i := range told {
			commits = append(commits, &Commit{Durable: i > 0})
		}
		l.q.Log = failing{l, commits, told}
		errs := l.group(t, commits...)
		fails := make([]bool, len(errs))
		for i, err := range errs {
			fails[i] = errors.Is(err, boom)
		}
		if got := strings.Join(l.calls, "; "); fmt.Sprint(fails) != c.fails || fmt.Sprint(told) != c.fails || got != c.calls {
			t.Errorf("%s: fail %v, told so %v, want %s, %s", got, fails, told, c.fails, c.calls)
		}
	}
}

// Who has succeeded, but must be told of an error, is shown before, and not told that it has failed.
func TestShownWithAnError(t *testing.T) {
	l, boom, c := newFakeLog(), errors.New("boom"), &Commit{}
	l.showErr = boom
	told := make([]bool, 1)
	l.q.Log = failing{l, []*Commit{c}, told}
	if err := l.commit(c, false); !errors.Is(err, boom) || l.shown != 1 || told[0] {
		t.Errorf("%v, %d shown, told that it has failed: %v", err, l.shown, told[0])
	}
}

// failing has commits told when they fail: Renew forgets what is to be called.
type failing struct {
	*fakeLog
	commits []*Commit
	told    []bool
}

func (f failing) Write() error {
	err := f.fakeLog.Write()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.commits {
		c.Failed = func(error) { f.told[i] = true }
	}
	return err
}

// A round without a commit of its own is led by whoever wants one.
func TestLead(t *testing.T) {
	l := newFakeLog()
	l.mu.Lock()
	l.q.Lead()
	l.mu.Unlock()
	if got := strings.Join(l.calls, "; "); got != "begin 0" || l.q.Leading() {
		t.Errorf("%s, leading: %v", got, l.q.Leading())
	}
	if err := l.commit(&Commit{}, true); err != nil || l.syncs != 1 {
		t.Errorf("%v, %d syncs", err, l.syncs)
	}
}

// TestFailedRoundKeepsNoCommit: what takes the commits behind a round along when it fails leaves none of them in the arrays that
// rounds are gathered in: whatever refers to a commit would never be found by the collector.
func TestFailedRoundKeepsNoCommit(t *testing.T) {
	l := newFakeLog()
	add := func(n int) {
		for range n {
			l.appended++
			l.q.Add(&Commit{Last: l.appended})
		}
	}
	l.mu.Lock()
	for range 2 { // there are two arrays, with room
		add(7)
		l.q.Lead()
	}
	add(1)
	l.writing, l.writeErr = make(chan struct{}), errors.New("write")
	l.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.q.Lead()
	}()
	l.await(t, func() bool { return l.q.Leading() })
	l.mu.Lock()
	add(6)
	l.mu.Unlock()
	close(l.writing)
	<-ended
	if got := l.calls[len(l.calls)-1]; got != "write failed: 1, behind them 6" {
		t.Fatal(got)
	}
	for i, c := range l.q.spare[:cap(l.q.spare)] {
		if c != nil {
			t.Errorf("commit %d is still referred to, at %d", c.Last, i)
		}
	}
}

// Every commit of many goroutines has its outcome, in the order of the sequences, and syncs are shared.
func TestManyCommit(t *testing.T) {
	l := newFakeLog()
	l.syncTime = 50 * time.Microsecond
	const goroutines, each = 16, 500
	var working sync.WaitGroup
	for g := range goroutines {
		working.Go(func() {
			c := &Commit{}
			for i := range each {
				if err := l.commit(c, (g+i)%3 > 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	if l.shown != goroutines*each || l.q.Waiting() != 0 || l.q.Leading() {
		t.Errorf("%d of %d shown, %d still wait", l.shown, goroutines*each, l.q.Waiting())
	}
	if durable := goroutines * each * 2 / 3; l.syncs == 0 || l.syncs >= durable {
		t.Errorf("%d syncs for %d commits", l.syncs, durable)
	}
}
