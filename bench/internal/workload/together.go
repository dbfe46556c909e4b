package workload

import (
	"errors"
	"sync"
)

// together runs fn in several goroutines, numbered from 0, waits for all and
// returns their errors. One goroutine is the caller's own.
func together(goroutines int, fn func(g int) error) error {
	if goroutines == 1 {
		return fn(0)
	}
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() { errs[g] = fn(g) })
	}
	all.Wait()
	return errors.Join(errs...)
}
