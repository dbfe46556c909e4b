package base

import (
	"errors"
	"fmt"
)

// The errors of the public API. The root package re-exports each of them.
var (
	ErrNotFound      = errors.New("cairn: key not found")
	ErrConflict      = errors.New("cairn: transaction conflict")
	ErrClosed        = errors.New("cairn: store is closed")
	ErrReadOnly      = errors.New("cairn: read-only")
	ErrTxClosed      = errors.New("cairn: transaction or iterator is closed")
	ErrBatchChanged  = errors.New("cairn: the batch was changed while it was written")
	ErrTxForgotten   = errors.New("cairn: closed, but memory of a transaction that was never ended is still in use")
	ErrKeyTooLarge   = errors.New("cairn: key too large")
	ErrValueTooLarge = errors.New("cairn: value too large")
	ErrEmptyKey      = errors.New("cairn: empty key")
	ErrCorrupt       = errors.New("cairn: corruption")
	ErrPoisoned      = errors.New("cairn: store is poisoned by a failed write or sync; reopen it")
	ErrCommitUnknown = errors.New("cairn: outcome of the commit is unknown until the store is reopened")
	ErrNoSpace       = errors.New("cairn: no space left on device")
	ErrUnsupported   = errors.ErrUnsupported // the standard library's, which package vfs and others return
	ErrFormatTooNew  = errors.New("cairn: file was written by a newer version")
	ErrInvalidOption = errors.New("cairn: invalid option")
	ErrLimit         = errors.New("cairn: more than the format has room for")
)

// CorruptionError says what is wrong and where. It matches ErrCorrupt.
type CorruptionError struct {
	File   string // path or name of the file; "" if not known at this level
	Offset int64  // byte offset in File; -1 if the file as a whole is meant
	What   string // what was found, in words
}

func (e *CorruptionError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("cairn: corruption in %s: %s", e.File, e.What)
	}
	return fmt.Sprintf("cairn: corruption in %s at offset %d: %s", e.File, e.Offset, e.What)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorrupt }

// Corruptf makes a CorruptionError.
func Corruptf(file string, offset int64, format string, args ...any) error {
	return &CorruptionError{File: file, Offset: offset, What: fmt.Sprintf(format, args...)}
}

// Locate adds the place to a *CorruptionError that has none yet; any other error stays what it is.
func Locate(err error, file string, offset int64) error {
	var c *CorruptionError
	if errors.As(err, &c) && c.File == "" {
		return Corruptf(file, offset, "%s", c.What)
	}
	return err
}

// ConflictError names the key or range whose change by another commit made a
// transaction fail. It matches ErrConflict. High nil means the single key Low, an empty High no upper bound.
type ConflictError struct {
	Low, High []byte // user keys
	Seq       uint64 // sequence of a commit that came between

	// Wide: the transaction had read more than it could remember key by key; what was changed may be a key between
	// those it had read.
	Wide bool
}

func (e *ConflictError) Error() string {
	what := fmt.Sprintf("cairn: transaction conflict on key %q", e.Low)
	switch {
	case len(e.High) > 0:
		what = fmt.Sprintf("cairn: transaction conflict on range [%q, %q)", e.Low, e.High)
	case e.High != nil && len(e.Low) > 0:
		what = fmt.Sprintf("cairn: transaction conflict on all keys from %q on", e.Low)
	case e.High != nil:
		what = "cairn: transaction conflict on all keys"
	}
	if e.Wide {
		what += ", or one near it: more was read than is remembered key by key"
	}
	return what
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }
