package vfs

import "io"

// SharedBytes is how much memory the holder of a lock shares with those who watch it.
const SharedBytes = 64

// Sharer is what Lock returns to an exclusive holder on a file system where other processes can see
// memory of the holder's. It is optional.
type Sharer interface {
	// Share returns SharedBytes, aligned for 64-bit words, that everybody sees who watches the lock
	// file. The first word is a number that tells the holder from all others, and is not stored to;
	// the rest is zero at first. Nobody uses the memory any more when the lock is let go. After an
	// error that is errors.ErrUnsupported nobody can watch, or the holder is Hidden and those who watch
	// find another first word, until a call succeeds. After any other they may not know.
	Share() ([]byte, error)
}

// Watcher is an FS where the holder of a lock can be seen without taking it. It is optional.
type Watcher interface {
	// Watch watches a lock file that is there, and needs no right to write to it. It keeps nobody
	// from taking the lock. Where that cannot be had, on a network file system for one, the error
	// is one of errors.ErrUnsupported. For a lock file that is just being made it waits.
	Watch(name string) (Watch, error)
}

// Watch is a look at a lock file. Its methods may be called at once, Close after all others.
type Watch interface {
	io.Closer
	// Bytes returns the SharedBytes that the exclusive holder shares, as soon as it has taken the
	// lock, or that the last one has left: while somebody watches, the first word does not become
	// what it has been before. They must not be stored to.
	Bytes() []byte
	// Holder reports whether there is an exclusive holder. If it Holds, Bytes are that one's by then, or zero.
	Holder() (Holder, error)
	// Check is that of Guard: it fails unless the lock file's name still leads to the file that is
	// watched.
	Check() error
}

// Holder is what is known of the exclusive holder of a lock.
type Holder int

// What a Watch finds.
const (
	Nobody Holder = iota // holds the lock
	Holds                // somebody does, and can Share
	Hidden               // somebody does who tried to Share and failed
)
