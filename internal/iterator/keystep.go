package iterator

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// KeyStepper may be implemented by a base.Iterator that can tell cheaply where
// the next key begins (a table knows which rows are older versions). Without it
// every key has to be copied and compared to recognise its older versions.
type KeyStepper interface {
	// NextKey moves forward to the first entry with another key, that is, over
	// the older versions of the current one. Otherwise it is like Next.
	NextKey() bool
}

// stepper steps over the versions of a key in an iterator of any kind.
type stepper struct {
	own   KeyStepper
	saved []byte // the key being left, if the iterator cannot do it itself
}

func (s *stepper) init(it base.Iterator) { s.own, _ = it.(KeyStepper) }

// nextKey moves it, the iterator given to init, to the next key.
func (s *stepper) nextKey(it base.Iterator) bool {
	if s.own != nil {
		return s.own.NextKey()
	}
	if !it.Valid() {
		return false
	}
	s.saved = append(s.saved[:0], it.Key()...)
	for it.Next() {
		if !bytes.Equal(it.Key(), s.saved) {
			return true
		}
	}
	return false
}

// prevKey moves it backward to the last entry with another key.
func (s *stepper) prevKey(it base.Iterator) bool {
	s.saved = append(s.saved[:0], it.Key()...)
	for it.Prev() {
		if !bytes.Equal(it.Key(), s.saved) {
			return true
		}
	}
	return false
}
