package arena

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// HugeBytes is the size of a huge page; regions of at least this size are
// aligned to it where the platform allows and may be backed by huge pages.
const HugeBytes = 2 << 20

// ErrNoMemory says that the system gives no more memory, or addresses: the least of what it allows has been reached.
var ErrNoMemory = errors.New("arena: the system gives no memory")

// errNotMapping is returned for a slice that is not a mapping of this package.
var errNotMapping = errors.New("arena: not a whole mapping")

// pageBytes is the operating system's page size, a power of two.
var pageBytes = os.Getpagesize()

// mapped counts the bytes of all live mappings of the process.
var mapped atomic.Int64

// Mapped returns how many bytes this process has mapped through Map and not
// unmapped yet, without what closed stores have left for others (Kept). Tests assert with it that nothing leaked.
func Mapped() int64 { return mapped.Load() }

// Map returns n bytes, rounded up to whole pages, of zeroed memory outside the
// Go heap. The garbage collector neither scans nor counts it, so it must hold
// no Go pointers. len and cap of the result are the size of the mapping. It is
// the caller's until Unmap. n <= 0 is an error, and ErrNoMemory that the system gives none.
func Map(n int) ([]byte, error) {
	if n <= 0 || n > maxMapBytes {
		return nil, fmt.Errorf("arena: cannot map %d bytes", n)
	}
	kept.makeWay(roundUp(n, pageBytes))
	return mapFresh(n)
}

// mapFresh is Map, whatever is kept.
func mapFresh(n int) ([]byte, error) {
	size := roundUp(n, pageBytes)
	b, err := mapMemory(size)
	if err != nil && kept.dropAll() {
		b, err = mapMemory(size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: map %d bytes: %w", ErrNoMemory, size, err)
	}
	mapped.Add(int64(size))
	return b, nil
}

// Unmap gives back a whole mapping as Map returned it (a prefix of it with the
// same capacity is accepted). Nothing may refer to the memory any more: a later
// access faults, or hits a stranger's mapping.
func Unmap(b []byte) error {
	if cap(b) == 0 || cap(b)%pageBytes != 0 {
		return errNotMapping
	}
	b = b[:cap(b)]
	if err := unmapMemory(b); err != nil {
		return fmt.Errorf("arena: unmap %d bytes: %w", len(b), err)
	}
	mapped.Add(-int64(len(b)))
	return nil
}

// AdviseHuge asks for huge pages behind b, a mapping or whole pages of one. It
// is a hint: it does nothing below HugeBytes and where the platform has none.
func AdviseHuge(b []byte) {
	if len(b) >= HugeBytes {
		adviseHuge(b, true)
	}
}

// Release gives the memory behind b, whole pages of a mapping, back to the
// operating system while the addresses stay valid. The contents are zero
// afterwards. It reports whether memory was given back; where the platform
// cannot, the bytes are merely cleared.
func Release(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if len(b)%pageBytes == 0 && releaseMemory(b) {
		return true
	}
	clear(b)
	return false
}

// Touch brings the memory behind b, whole pages of a mapping, into the process before it
// is used, so that nobody who uses it waits for the system to find it, which takes
// microseconds for each page and, on a virtual machine whose host has to, milliseconds for
// a huge one. The contents stay as they are, and b may be in use meanwhile. It is a hint:
// it does nothing where the platform has no call for it.
func Touch(b []byte) {
	if len(b) > 0 {
		touchMemory(b)
	}
}

// roundUp rounds n up to a multiple of unit, a power of two.
func roundUp(n, unit int) int { return (n + unit - 1) &^ (unit - 1) }
