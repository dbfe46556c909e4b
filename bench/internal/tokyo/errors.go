//go:build cgo && (native || native_tokyocabinet)

package tokyo

/*
#cgo LDFLAGS: -ltokyocabinet
#include <tcutil.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

// ErrNoRecord means that a key is absent, or that a walk is at its end.
var ErrNoRecord = errors.New("tokyocabinet: no record found")

// ErrLocked means that the file is open elsewhere.
var ErrLocked = errors.New("tokyocabinet: the file is locked")

// Version is the library's own word.
func Version() string { return C.GoString(C.tcversion) }

func check(code C.int) error {
	switch code {
	case C.TCESUCCESS:
		return nil
	case C.TCENOREC:
		return ErrNoRecord
	case C.TCELOCK, C.TCETHREAD: // TCETHREAD: open in this very process
		return ErrLocked
	}
	return errors.New("tokyocabinet: " + C.GoString(C.tcerrmsg(code)))
}

// start is where C finds the bytes; never nil, which the library would not take
// for an empty value.
func start(b []byte) unsafe.Pointer {
	if len(b) == 0 {
		return unsafe.Pointer(&none)
	}
	return unsafe.Pointer(&b[0])
}

var none byte

// lend shows memory of C as a slice.
func lend(p unsafe.Pointer, n C.int) []byte {
	if n == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(p), int(n))
}
