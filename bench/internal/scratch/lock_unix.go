//go:build unix

package scratch

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock fails if a living owner has the mark.
func lock(mark *os.File) error {
	return unix.Flock(int(mark.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
