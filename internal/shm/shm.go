// Package shm is what the process that writes a store shows to those that read it: how far its commits
// can be seen, and where in the log that is.
//
// # What it provides
//
// Writer, and Reader for others. Both are views of vfs.SharedBytes of memory, which belong to the lock file
// (vfs.Sharer, vfs.Watcher), so that there is one writer, and it is the one who holds the lock.
//
// # State
//
//	word  0  turn: a number that tells the holder of the lock from all others, which package vfs has set
//	      1  the greatest sequence that may be seen
//	      2  the position in the log (wal.Position) behind the commit it belongs to, or a later one that will
//	         be seen; 0: the log has none
//	      3  how many edits this writer has made to manifests
//	      4  1: all this is shown; 0: not yet, and nothing has been committed since the lock was taken
//
// The memory is never trusted: a reader takes from it only where to look, and what it finds there is checked
// by itself.
//
// # Concurrency
//
// All methods may be called at once, Begin, Show and Settle by one goroutine at a time. A reader loads the sequence before the
// position, which the writer stores first: so the log up to the position has all that the sequence speaks of.
package shm

import (
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
)

const (
	wordTurn = iota
	wordSeq
	wordEnd
	wordEdits
	wordShown
)

// Writer shows. The zero Writer shows nothing.
type Writer struct {
	words atomic.Pointer[[]atomic.Uint64]
	edits atomic.Uint64
	owes  atomic.Bool // something could not be stored: Settle stores it

	seq, end uint64 // of the last Begin or Show
}

// Showing reports whether Begin was called.
func (w *Writer) Showing() bool { return w.words.Load() != nil }

// Begin begins to show, in memory that nobody else shows anything in, that everything up to seq may be seen
// and that there is no log.
func (w *Writer) Begin(memory []byte, seq uint64) {
	words := arena.Words(memory)
	w.words.Store(&words)
	w.seq, w.end = seq, 0
	w.storeAll()
}

func (w *Writer) storeAll() {
	w.store(func(words []atomic.Uint64) {
		words[wordEnd].Store(w.end)
		words[wordSeq].Store(w.seq)
		for stored := false; !stored; { // Edited may have stored a greater number meanwhile
			n := w.edits.Load()
			words[wordEdits].Store(n)
			stored = n == w.edits.Load()
		}
		words[wordShown].Store(1)
	})
}

// Show shows that everything up to seq may be seen, whose last commit ends at end. It reports false if readers go on to see
// what was shown before, and cannot know it: what follows must not be in tables, nor acknowledged, before Settle.
func (w *Writer) Show(seq, end uint64) bool {
	w.seq, w.end = seq, end
	return w.store(func(words []atomic.Uint64) {
		words[wordEnd].Store(end)
		words[wordSeq].Store(seq)
	})
}

// Settle stores what could not be stored, if anything, and reports whether everything is shown. It is called like Show.
func (w *Writer) Settle() bool {
	if !w.owes.Load() {
		return true
	}
	w.owes.Store(false) // before: an Edited beside this may fail anew
	w.storeAll()
	return !w.owes.Load()
}

// store stores, if anything is shown, and reports false if that is owed. If the file is not there any more, because somebody
// has cut it, nothing is shown from now on, and readers find that out in the same way. If it is there, but takes nothing (its
// block is another file's, too, and the disk is full), they do not.
func (w *Writer) store(f func(words []atomic.Uint64)) bool {
	words := w.words.Load()
	if words == nil || arena.Survives(func() { f(*words) }) {
		return true
	}
	if !arena.Survives(func() { (*words)[wordTurn].Load() }) {
		w.words.Store(nil)
		return true
	}
	w.owes.Store(true)
	return false
}

// Edited shows that there was one more edit of the manifest.
func (w *Writer) Edited() {
	n := w.edits.Add(1)
	w.store(func(words []atomic.Uint64) { words[wordEdits].Store(n) })
}

// End lets go of the memory, which goes on to show what it has shown.
func (w *Writer) End() { w.words.Store(nil) }

// Reader sees what a Writer shows, of this process or another.
type Reader struct{ words []atomic.Uint64 }

// NewReader returns the reader of a memory.
func NewReader(memory []byte) Reader { return Reader{arena.Words(memory)} }

// Seen is what was shown at one moment.
type Seen struct {
	Turn, Seq, End, Edits uint64
	Shown                 bool
}

// Look looks at what is shown. It is not there if somebody has cut the file.
func (r Reader) Look() (s Seen, ok bool) {
	ok = arena.Survives(func() { s = r.look() })
	return s, ok
}

func (r Reader) look() (s Seen) {
	for {
		s.Turn = r.words[wordTurn].Load()
		s.Shown = r.words[wordShown].Load() == 1
		s.Edits = r.words[wordEdits].Load()
		s.Seq = r.words[wordSeq].Load()
		s.End = r.words[wordEnd].Load()
		if r.words[wordTurn].Load() == s.Turn {
			return s
		}
	}
}

// News reports whether there is something to see that was not with an earlier turn and sequence, or nothing.
func (r Reader) News(turn, seq uint64) (news bool) {
	return !arena.Survives(func() { news = r.words[wordSeq].Load() != seq || r.words[wordTurn].Load() != turn }) || news
}
