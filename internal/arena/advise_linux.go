//go:build linux && !arena_heap

package arena

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages behind b, or forbids them. Kernels without
// them refuse, which is as good.
func adviseHuge(b []byte, want bool) {
	advice := unix.MADV_NOHUGEPAGE
	if want {
		advice = unix.MADV_HUGEPAGE
	}
	_ = unix.Madvise(b, advice)
}

// touchMemory asks for the pages behind b, writable. Kernels before 5.14 refuse.
func touchMemory(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// releaseMemory drops the pages behind b; the next access finds zeros.
func releaseMemory(b []byte) bool { return unix.Madvise(b, unix.MADV_DONTNEED) == nil }
