package recycle

import (
	"runtime"
	"sync"
	"testing"
)

// What was given back last is there after collections, on any processor; nobody gets what
// another has.
func TestPool(t *testing.T) {
	var p Pool[int]
	x := p.Get()
	*x = 7
	p.Put(x)
	for range 3 {
		runtime.GC()
	}
	done := make(chan *int)
	go func() { done <- p.Get() }()
	if got := <-done; got != x || *got != 7 {
		t.Error("what was given back is lost")
	}
	if p.Get() == x {
		t.Error("handed out twice")
	}
}

func TestPoolConcurrently(t *testing.T) {
	var p Pool[int]
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 10000 {
				a, b := p.Get(), p.Get()
				if *a, *b = i, i; *a != i || a == b {
					t.Error("handed out twice")
				}
				p.Put(a)
				p.Put(b)
			}
		})
	}
	all.Wait()
}
