package engine

import "sync/atomic"

// keptWrites is memory for what a transaction writes, of the last one that was large: to fetch it anew costs several
// times what writing to it does. It is counted as those of transactions are.
type keptWrites struct {
	buf    atomic.Pointer[[]byte]
	wanted atomic.Bool // since it was last looked at
}

// KeepWrites keeps a buffer of writes for the next transaction that is large. Nobody may use it any more.
func (e *Engine) KeepWrites(buf []byte) {
	if old := e.writes.buf.Load(); old != nil && cap(*old) > cap(buf) || cap(buf) > 2*e.cfg.GatherBytes() {
		return // of one that is larger than others can be: it could not be written to a table
	}
	buf = buf[:0]
	e.CountWrites(int64(cap(buf)))
	e.writes.wanted.Store(true)
	e.dropWrites(e.writes.buf.Swap(&buf))
}

// TakeWrites returns a buffer of at least n bytes that was kept, nil if there is none.
func (e *Engine) TakeWrites(n int) []byte {
	e.writes.wanted.Store(true)
	buf := e.writes.buf.Swap(nil)
	if e.dropWrites(buf); buf == nil || cap(*buf) < n {
		return nil
	}
	return *buf
}

// ageWrites lets go of memory that no transaction has wanted since it was called before.
func (e *Engine) ageWrites() {
	if !e.writes.wanted.Swap(false) {
		e.dropWrites(e.writes.buf.Swap(nil))
	}
}

// dropWrites no longer counts a buffer that was kept; nil: there was none.
func (e *Engine) dropWrites(buf *[]byte) {
	if buf != nil {
		e.CountWrites(-int64(cap(*buf)))
	}
}
