package turn

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// busy makes n goroutines run until stop is called.
func busy(n int) (stop func()) {
	var done atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !done.Load() {
			}
		})
	}
	return func() {
		done.Store(true)
		all.Wait()
	}
}

// Who gives way to as many goroutines as there are processors goes on, and says that it
// is crowded; afterwards it is not.
func TestGiveWay(t *testing.T) {
	// The runtime has goroutines of its own that may wait just now, and of who has given way
	// to one nothing can be said before its own time is over.
	var s Share
	for deadline := time.Now().Add(10 * time.Second); s.GiveWay(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("crowded where nothing else runs")
		}
	}
	stop := busy(2 * runtime.GOMAXPROCS(0))
	start, crowded := time.Now(), 0
	for time.Since(start) < 200*time.Millisecond {
		if s.GiveWay() {
			crowded++
		}
	}
	stop()
	if crowded == 0 {
		t.Error("not crowded where others wait for every processor")
	}
}

// After having waited it works a part of that time, however often it offers to give way.
func TestShareIsKept(t *testing.T) {
	defer busy(2 * runtime.GOMAXPROCS(0))()
	var s Share
	for range 20 {
		s = Share{}
		before := time.Now()
		s.GiveWay()
		waited := time.Since(before) // or a little less: it may have been interrupted since
		if whole := s.until.Sub(before); whole > waited+waited/leastShare {
			t.Fatalf("waited %v, may work until %v after it began", waited, whole)
		}
	}
	own := time.Now().Add(time.Hour)
	s.until = own
	for range 100 {
		if !s.GiveWay() || s.until != own {
			t.Fatal("it waits in its own time")
		}
	}
}

func TestGiveWayDoesNotAllocate(t *testing.T) {
	var s Share
	s.GiveWay()
	if n := testing.AllocsPerRun(100, func() { s.GiveWay() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
