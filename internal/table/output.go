package table

import (
	"fmt"
	"io"

	"github.com/cairndb/cairn/internal/recycle"
	"github.com/cairndb/cairn/vfs"
)

// outputBytes is how much is gathered before it is written, and outputRoom what a buffer
// begins with: the page that is more than enough fits in.
const (
	outputBytes = 64 << 10
	outputRoom  = outputBytes + DefaultBlockBytes*5/4
)

// startBytes is how much is written before the device is asked to begin with it. A table
// that it were given whole at the end would stand before the syncs of commits in its queue.
const startBytes = 1 << 20

var outputBuffers recycle.Pool[[]byte]

// output writes a file from front to back in few, large writes.
type output struct {
	f       vfs.File
	name    string
	buf     *[]byte // pooled; what is not written yet
	written int64
	started int64 // the device was asked to write what stands before
}

func newOutput(f vfs.File, name string) output {
	buf := outputBuffers.Get()
	if cap(*buf) == 0 {
		*buf = make([]byte, 0, outputRoom)
	}
	return output{f: f, name: name, buf: buf}
}

// offset returns where in the file the next byte appended to buf will stand.
func (o *output) offset() int64 { return o.written + int64(len(*o.buf)) }

// settle writes the buffer if it is large.
func (o *output) settle() error {
	if len(*o.buf) < outputBytes {
		return nil
	}
	return o.flush()
}

func (o *output) flush() error {
	for b := *o.buf; len(b) > 0; {
		n, err := o.f.WriteAt(b, o.written)
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return fmt.Errorf("cairn: write %s at offset %d: %w", o.name, o.written, err)
		}
		o.written += int64(n)
		b = b[n:]
	}
	*o.buf = (*o.buf)[:0]
	if n := o.written - o.started; n >= startBytes {
		if f, ok := o.f.(vfs.WriteStarter); ok {
			f.StartWriteback(o.started, n)
		}
		o.started = o.written
	}
	return nil
}

// finish writes what is left, syncs and closes the file.
func (o *output) finish() error {
	if err := o.flush(); err != nil {
		return err
	}
	if err := o.f.Sync(); err != nil {
		return fmt.Errorf("cairn: sync %s: %w", o.name, err)
	}
	return o.close()
}

// close closes the file and gives the buffer back.
func (o *output) close() error {
	if o.buf == nil {
		return nil
	}
	if *o.buf = (*o.buf)[:0]; cap(*o.buf) <= mostRecycled {
		outputBuffers.Put(o.buf)
	}
	o.buf = nil
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("cairn: close %s: %w", o.name, err)
	}
	return nil
}
