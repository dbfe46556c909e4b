package engine

import (
	"os"

	"golang.org/x/sys/unix"
)

// DataSync makes what was written durable, and of the metadata only what is needed
// to read it.
func DataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
