package scratch

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock fails if a living owner has the mark.
func lock(mark *os.File) error {
	const all = 1
	return windows.LockFileEx(windows.Handle(mark.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, all, 0, &windows.Overlapped{})
}
