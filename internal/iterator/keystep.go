package iterator

import "github.com/cairndb/cairn/internal/base"

// KeyStepper may be implemented by a base.Iterator that can tell cheaply where
// the next key begins (a table knows which rows are older versions). Without it
// every key has to be copied and compared to recognise its older versions.
type KeyStepper interface {
	// NextKey moves forward to the first entry with another key, that is, over
	// the older versions of the current one. Otherwise it is like Next.
	NextKey() bool
}

// nextKey moves it to its next key; step is it, if it can do so by itself, else
// nil, and saved is a buffer for the key that is left.
func nextKey(it base.Iterator, step KeyStepper, saved *[]byte) bool {
	if step != nil {
		return step.NextKey()
	}
	if !it.Valid() {
		return false
	}
	key := append((*saved)[:0], it.Key()...)
	*saved = key
	for it.Next() {
		if !equal(it.Key(), key) {
			return true
		}
	}
	return false
}

// VersionStepper may be implemented by a base.Iterator over many versions of a key.
type VersionStepper interface {
	base.Iterator
	// Newest moves, from a version that vis sees, to the newest of the same key that it sees, and reports whether that
	// is another one.
	Newest(vis base.Visibility) bool
}

// VersionTeller may be implemented by a base.Iterator that knows the newest version of a key when it stands on it.
type VersionTeller interface {
	// IsNewest reports whether the current entry is known to be the newest of its key in the iterator.
	IsNewest() bool
}
