//go:build !linux

package harness

// full is not asked here.
func full(string) bool { return false }

// filesystem is not asked here.
func filesystem(string) (name string, volatile bool) { return "", false }

// readAhead is not asked here.
func readAhead(devices, dir string) string { return "" }
