// Package turn lets a goroutine wait until it is told that its work has been done by
// another, or that its turn has come to do it; sleep until there may be something to do; or
// work in the background without keeping others from a processor.
//
// # Concurrency
//
// A Wait is guarded by a mutex of its user, who holds it in every call but Block. Told that
// its work is done, the waiting goroutine needs that mutex no more: what was written before
// Tell can be read after Block.
package turn

// Wait is where one goroutine waits. The zero value is ready.
type Wait struct {
	// Made when there is somebody to wait. true: done; false: its turn. Room for one of
	// each: the work of a goroutine whose turn it was may be done by one that came first.
	told chan bool
}

// Prepare comes before Block.
func (w *Wait) Prepare() {
	if w.told == nil {
		w.told = make(chan bool, 2)
	}
}

// Block waits for the next Tell and returns what it said.
func (w *Wait) Block() (done bool) { return <-w.told }

// Tell wakes the goroutine that waits, or is about to; if there is none it does nothing.
// After a Tell that it is done the Wait is its goroutine's again.
func (w *Wait) Tell(done bool) {
	if w.told == nil {
		return
	}
	select {
	case w.told <- done:
	default:
	}
}

// Renew forgets what was told and nobody has heard, so that the Wait can serve again.
func (w *Wait) Renew() {
	for len(w.told) > 0 {
		<-w.told
	}
}
