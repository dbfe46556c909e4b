//go:build !linux

package harness

// killMarked: only what is in the child's own group is found here.
func killMarked(string) int { return 0 }
