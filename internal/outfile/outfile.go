// Package outfile writes files from front to back, in few, large writes.
//
// # Concurrency
//
// A File is for one goroutine.
package outfile

import (
	"fmt"
	"io"

	"github.com/cairndb/cairn/internal/recycle"
	"github.com/cairndb/cairn/vfs"
)

const (
	gatheredBytes = 64 << 10                          // are gathered before they are written
	room          = 2*gatheredBytes + gatheredBytes/4 // what a buffer begins with: a page of a block that is more than gathered fits in
	mostKept      = 2 << 20                           // a buffer that has grown beyond is not used again
)

// startBytes is how much is written before the device is asked to begin with it. A table
// that it were given whole at the end would stand before the syncs of commits in its queue.
const startBytes = 1 << 20

var buffers recycle.Pool[[]byte]

// File is a file that is being written, and owned by who writes it: Finish and Close close it.
type File struct {
	Buf *[]byte // pooled; what is appended is not written yet. nil once it is closed

	f       vfs.File
	name    string
	written int64
	started int64 // the device was asked to write what stands before
}

// New returns a File to f, which is new and empty; name is what errors call it.
func New(f vfs.File, name string) File {
	buf := buffers.Get()
	if cap(*buf) == 0 {
		*buf = make([]byte, 0, room)
	}
	return File{f: f, name: name, Buf: buf}
}

// Offset returns where in the file the next byte appended to Buf will stand.
func (o *File) Offset() int64 { return o.written + int64(len(*o.Buf)) }

// Settle writes the buffer if it is large.
func (o *File) Settle() error {
	if len(*o.Buf) < gatheredBytes {
		return nil
	}
	return o.Flush()
}

// Flush writes what has been appended. After an error the file is only to be closed.
func (o *File) Flush() error {
	for b := *o.Buf; len(b) > 0; {
		n, err := o.f.WriteAt(b, o.written)
		if err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
		if err != nil {
			return fmt.Errorf("write %s at offset %d: %w", o.name, o.written, err)
		}
		o.written += int64(n)
		b = b[n:]
	}
	*o.Buf = (*o.Buf)[:0]
	if n := o.written - o.started; n >= startBytes {
		if f, ok := o.f.(vfs.WriteStarter); ok {
			f.StartWriteback(o.started, n)
		}
		o.started = o.written
	}
	return nil
}

// Finish writes what is left, syncs and closes the file.
func (o *File) Finish() error {
	if err := o.Flush(); err != nil {
		return err
	}
	if err := o.f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", o.name, err)
	}
	return o.Close()
}

// Close closes the file and gives the buffer back. It may be called again.
func (o *File) Close() error {
	if o.Buf == nil {
		return nil
	}
	if *o.Buf = (*o.Buf)[:0]; cap(*o.Buf) <= mostKept {
		buffers.Put(o.Buf)
	}
	o.Buf = nil
	if err := o.f.Close(); err != nil {
		return fmt.Errorf("close %s: %w", o.name, err)
	}
	return nil
}
