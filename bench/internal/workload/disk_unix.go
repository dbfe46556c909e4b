//go:build unix

package workload

import (
	"io/fs"
	"syscall"
)

// allocatedBytes counts in units of 512 bytes, whatever the file system's block.
func allocatedBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512
	}
	return info.Size()
}
