package vfs

import "errors"

// ErrNoSpace is the full disk of a file system that is not the operating system's
// (memfs with a capacity, faultfs). It matches IsNoSpace.
var ErrNoSpace = errors.New("no space left on device")

// ErrNotAttempted is matched by the error of a sync or a rename that was not attempted, for want
// of a file descriptor for instance.
var ErrNotAttempted = errors.New("not attempted")

// IsNoSpace reports whether err says that a device or a quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, ErrNoSpace) || systemNoSpace(err)
}
