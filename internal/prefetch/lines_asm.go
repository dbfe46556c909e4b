//go:build amd64 || arm64

package prefetch

// lines is in assembly: Go has no such instruction to offer.
//
//go:noescape
func lines(p *byte, n int)
