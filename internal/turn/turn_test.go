package turn

import (
	"testing"
	"time"
)

// What was told to a goroutine whose work was done without it is not heard by the next.
func TestRenew(t *testing.T) {
	var w Wait
	w.Tell(true) // nobody waits
	w.Prepare()
	w.Tell(false)
	w.Tell(true)
	if w.Block() {
		t.Error("told that it was its turn, heard that it was done")
	}
	w.Renew()
	w.Tell(false)
	if w.Block() {
		t.Error("heard what had been told before Renew")
	}
}

// Whatever ends a sleep, the next one with the same timer lasts as long as it is asked to.
func TestSleep(t *testing.T) {
	wake, stop := make(chan struct{}, 1), make(chan struct{})
	for range 20 {
		start := time.Now()
		if !Sleep(2*time.Millisecond, wake, stop) || time.Since(start) < 2*time.Millisecond {
			t.Fatal("woken by nobody")
		}
		wake <- struct{}{}
		if Sleep(time.Hour, wake, stop) {
			t.Fatal("not woken")
		}
		wake <- struct{}{}
		time.Sleep(time.Millisecond)
		if Sleep(0, nil, stop); len(wake) != 1 {
			t.Fatal("somebody else's wake was taken")
		}
		<-wake
	}
	close(stop)
	if Sleep(time.Hour, nil, stop) {
		t.Fatal("not stopped")
	}
}
