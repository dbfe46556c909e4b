package wal

import (
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/cairndb/cairn/vfs"
)

// windowBytes is how much of a segment's file is mapped at a time: it counts as memory of
// the process, though it is the page cache's.
const windowBytes = 1 << 20

// mostMapped is the longest write that goes through the mapping. A page that is stored to for
// the first time costs a fault, if it is not a part of a large one, as those are that zeros
// were written to, and that about as much as it takes to write a page.
const mostMapped = 8 << 10

// window is a part of a segment's file, mapped. A small write through it takes a fifth of
// the time of a system call, and survives the process being killed just as well. Only the
// leader of a commit group stores; Close may come at any time.
type window struct {
	mu   sync.Mutex
	file vfs.Mapper // nil: nothing is mapped any more
	at   int64      // offset of b in the file
	b    []byte
}

// takes reports whether a write of n bytes may go through the mapping.
func (w *window) takes(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file != nil && n <= mostMapped
}

// store stores p at offset off of a file of the given size, and reports whether it did. If
// not, p is to be written; the part of it that may be there already does no harm.
func (w *window) store(p []byte, off, size int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return false
	}
	if !w.covers(off, len(p)) {
		w.unmap()
		w.at = off &^ (vfs.MapUnit - 1)
		b, err := w.file.Map(w.at, int(min(windowBytes, size-w.at)))
		if err != nil {
			w.file = nil
			return false
		}
		if w.b = b; !w.covers(off, len(p)) {
			return false
		}
	}
	if !copyInto(w.b[off-w.at:], p) {
		w.unmap()
		w.file = nil
		return false
	}
	return true
}

func (w *window) covers(off int64, n int) bool {
	return off >= w.at && off+int64(n) <= w.at+int64(len(w.b))
}

// copyInto copies src into mapped memory. It reports false if that faulted: the disk is
// broken, or somebody cut the file.
func copyInto(dst, src []byte) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, fault := r.(interface {
				runtime.Error
				Addr() uintptr
			}); !fault {
				panic(r)
			}
		}
	}()
	copy(dst, src)
	return true
}

func (w *window) unmap() {
	if w.b != nil {
		vfs.Unmap(w.b) // of what Map returned it cannot fail
		w.b = nil
	}
}

// close ends the mapping, and returns the file if it could still be mapped.
func (w *window) close() vfs.Mapper {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unmap()
	file := w.file
	w.file = nil
	return file
}
