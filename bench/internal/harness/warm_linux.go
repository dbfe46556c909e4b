package harness

import "golang.org/x/sys/unix"

// warmBytes is how much memory is warmed, which is more than most cells take.
const warmBytes = 128 << 20

// warmMemory touches memory and gives it back, just before a child starts. A virtual machine
// may give memory that nobody uses back to its host, which makes the first touch of each page
// ten times as dear and hits whoever comes first, or asks for huge pages: that would be
// measured in place of the engine. Best effort.
func warmMemory() {
	b, err := unix.Mmap(-1, 0, warmBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return
	}
	defer unix.Munmap(b)
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // as large as the kernel has them
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}
