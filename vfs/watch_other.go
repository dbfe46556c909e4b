//go:build !linux

package vfs

import "os"

// signed reports whether somebody holds a lock who has signed it, or will in a moment.
func signed(f *os.File) bool { return heldAlone(f) }

// show has no use where there is no Watcher.
func (l *osLock) show() error { return nil }

// hide ends what the lock file says of its holder.
func (l *osLock) hide() error { return l.f.Truncate(0) }
