//go:build unix

package harness

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockMark fails if a living harness has the mark.
func lockMark(mark *os.File) error {
	return unix.Flock(int(mark.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}
