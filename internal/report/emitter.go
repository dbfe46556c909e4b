package report

import (
	"log/slog"
	"sync"
	"time"
)

// Emitter counts events and tells of them. The exported fields but Counters are set before it is used.
type Emitter struct {
	Counters
	Logger  *slog.Logger // nil: none
	OnEvent func(Event)  // nil: nobody

	aside sync.WaitGroup
}

// Emit tells of an event, and returns when those who are told have returned.
func (m *Emitter) Emit(ev Event) {
	ev.Time = time.Now()
	m.Count(ev)
	if m.Logger != nil {
		ev.Log(m.Logger)
	}
	if m.OnEvent != nil {
		m.OnEvent(ev)
	}
}

// Aside is Emit for those who hold a lock: it does not wait.
func (m *Emitter) Aside(ev Event) { m.aside.Go(func() { m.Emit(ev) }) }

// Wait waits until everybody has been told of what Aside was called with.
func (m *Emitter) Wait() { m.aside.Wait() }
