package harness

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockMark fails if a living harness has the mark.
func lockMark(mark *os.File) error {
	const all = 1
	return windows.LockFileEx(windows.Handle(mark.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, all, 0, &windows.Overlapped{})
}
