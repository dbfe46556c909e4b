//go:build (darwin || dragonfly || freebsd || netbsd || openbsd) && !arena_heap

package arena

func adviseHuge([]byte, bool) {}

func touchMemory([]byte) {}

func releaseMemory(b []byte) bool { return remapMemory(b) }
