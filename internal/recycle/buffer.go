package recycle

import "sync/atomic"

// Buffer keeps one buffer, the largest that was given back, for whoever needs a large one next: to fetch its memory anew
// costs several times what writing to it does. Count is set before its first use.
type Buffer struct {
	Count func(bytes int64) // counts bytes that are kept, or, if negative, are not any more

	buf    atomic.Pointer[[]byte]
	wanted atomic.Bool // since Age was called last
}

// Keep keeps buf, if it holds no more than most bytes. Nobody may use it any more.
func (b *Buffer) Keep(buf []byte, most int) {
	if old := b.buf.Load(); old != nil && cap(*old) > cap(buf) || cap(buf) > most {
		return
	}
	buf = buf[:0]
	b.Count(int64(cap(buf)))
	b.wanted.Store(true)
	b.drop(b.buf.Swap(&buf))
}

// Take returns a buffer of at least n bytes that was kept, which is the caller's, and nil if there is none.
func (b *Buffer) Take(n int) []byte {
	b.wanted.Store(true)
	buf := b.buf.Swap(nil)
	if b.drop(buf); buf == nil || cap(*buf) < n {
		return nil
	}
	return *buf
}

// Age lets go of what nobody has wanted since it was called before.
func (b *Buffer) Age() {
	if !b.wanted.Swap(false) {
		b.drop(b.buf.Swap(nil))
	}
}

// drop no longer counts a buffer that was kept; nil: there was none.
func (b *Buffer) drop(buf *[]byte) {
	if buf != nil {
		b.Count(-int64(cap(*buf)))
	}
}
