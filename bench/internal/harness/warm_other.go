//go:build !linux

package harness

func warmMemory() {}
