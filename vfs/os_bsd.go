//go:build dragonfly || freebsd || netbsd || openbsd

package vfs

import "errors"

func datasync(o *osFile) error { return o.f.Sync() }

func preallocate(*osFile, int64, int64) error { return errors.ErrUnsupported }
