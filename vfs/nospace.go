package vfs

import "errors"

// ErrNoSpace is the full disk of a file system that is not the operating system's
// (memfs with a capacity, faultfs). It matches IsNoSpace.
var ErrNoSpace = errors.New("no space left on device")

// IsNoSpace reports whether err says that a device or a quota is full.
func IsNoSpace(err error) bool {
	return errors.Is(err, ErrNoSpace) || systemNoSpace(err)
}
