package workload

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sectorBytes is what the kernel counts by, whatever a device's own sectors are.
const sectorBytes = 512

// deviceCounters is the file in which the kernel counts what the block device that dir
// lies on is asked to do.
func deviceCounters(dir string) string {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return ""
	}
	return fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev))
}

// deviceBytes is how much the block device under dir has written since the system was
// started, by whomever; -1 where nobody counts: the file system is not on one device.
func deviceBytes(dir string) int64 {
	text, err := os.ReadFile(deviceCounters(dir))
	if err != nil {
		return -1
	}
	const sectorsWritten = 6
	fields := strings.Fields(string(text))
	if len(fields) <= sectorsWritten {
		return -1
	}
	n, err := strconv.ParseInt(fields[sectorsWritten], 10, 64)
	if err != nil {
		return -1
	}
	return n * sectorBytes
}

// writeBack writes to the device what is dirty of the file system of dir.
func writeBack(dir string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_ = unix.Syncfs(fd)
}
