//go:build amd64 || arm64

package prefetch

import "sync/atomic"

// What follows is in assembly: Go has no such instruction to offer.

// lines brings the lines of n bytes, at least one.
//
//go:noescape
func lines(p *byte, n int)

// Word brings the line of a word on its way, as Lines does.
//
//go:noescape
func Word(w *atomic.Uint64)

// Byte brings the line of a byte on its way, as Lines does.
//
//go:noescape
func Byte(p *byte)
