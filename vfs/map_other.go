//go:build !linux

package vfs

import "errors"

// Unmap ends a mapping that Map made; there is none here.
func Unmap([]byte) error { return errors.ErrUnsupported }
