//go:build !amd64 && !arm64

package prefetch

import "sync/atomic"

func lines(*byte, int) {}

// Byte does nothing.
func Byte(*byte) {}

// Word does nothing.
func Word(*atomic.Uint64) {}
