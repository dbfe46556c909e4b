package faultfs

import (
	"errors"
	"io"

	"github.com/cairndb/cairn/vfs"
)

// closer passes Close on whatever the rules say: a failing close still lets go of
// the descriptor or lock.
type closer struct {
	fs    *FS
	inner io.Closer
	name  string
}

func (c *closer) Close() error {
	e := &Event{Kind: Close, Name: c.name}
	a := c.fs.begin(e)
	err := c.inner.Close()
	if a.kind != actPretend {
		done := err
		err = a.run(e, func() error { return done })
	}
	return c.fs.end(e, err)
}

type file struct {
	fs    *FS
	inner vfs.File
	name  string
}

func (h *file) Close() error {
	c := closer{h.fs, h.inner, h.name}
	return c.Close()
}

func (h *file) Sync() error {
	return h.fs.do(&Event{Kind: Sync, Name: h.name}, h.inner.Sync)
}

func (h *file) Preallocate(off, n int64) error {
	e := &Event{Kind: Preallocate, Name: h.name, Offset: off, Length: n}
	return h.fs.do(e, func() error { return h.inner.Preallocate(off, n) })
}

// Shorten implements vfs.Shortener, if the file below does. It is an event of the kind Preallocate, of no bytes.
func (h *file) Shorten(n int64) error {
	s, ok := h.inner.(vfs.Shortener)
	if !ok {
		return errors.ErrUnsupported
	}
	return h.fs.do(&Event{Kind: Preallocate, Name: h.name, Offset: n}, func() error { return s.Shorten(n) })
}

func (h *file) Size() (size int64, err error) {
	err = h.fs.obtain(&Event{Kind: Size, Name: h.name}, func() error {
		size, err = h.inner.Size()
		return err
	})
	return size, err
}

// WriteInPlace implements vfs.Overwriter, if the file below does. No rule is asked.
func (h *file) WriteInPlace() { vfs.WriteInPlace(h.inner) }

// Cached implements vfs.Cacher. A file below that does not know is not.
func (h *file) Cached(n int64) bool {
	c, ok := h.inner.(vfs.Cacher)
	return ok && c.Cached(n)
}

// Map implements vfs.Mapper, if the file below does. No rule is asked about what is stored.
func (h *file) Map(off int64, n int) (vfs.Mapping, error) {
	if m, ok := h.inner.(vfs.Mapper); ok {
		return m.Map(off, n)
	}
	return nil, errors.ErrUnsupported
}

func (h *file) ReadAt(p []byte, off int64) (int, error) {
	return h.transfer(Read, p, off, h.inner.ReadAt)
}

func (h *file) WriteAt(p []byte, off int64) (int, error) {
	return h.transfer(Write, p, off, h.inner.WriteAt)
}

func (h *file) transfer(kind Kind, p []byte, off int64, do func([]byte, int64) (int, error)) (int, error) {
	e := &Event{Kind: kind, Name: h.name, Offset: off, Length: int64(len(p))}
	a := h.fs.begin(e)
	n, err := 0, error(nil)
	switch {
	case a.kind == actShort, a.kind == actTear && kind == Write:
		if n, err = do(p[:a.prefix(len(p))], off); err == nil {
			err = e.fail(a.err)
		}
	case a.kind == actPretend && kind == Write:
		n = len(p)
	case a.kind == actNothing:
		n, err = do(p, off)
	default:
		err = e.fail(a.err)
	}
	return n, h.fs.end(e, err)
}
