package arena

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// groupLimits reads the limits of the memory control groups of this process and
// their parents, version 2 (memory.max) and version 1 (memory.limit_in_bytes).
func groupLimits() []int64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	var limits []int64
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			limits = append(limits, readLimit(filepath.Join(root, dir, file)))
			if dir == "/" || dir == "." {
				break
			}
		}
	}
	return limits
}

// processLimits returns the limits of addresses and of private memory of this process.
func processLimits() (limits []int64) {
	for _, what := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var l unix.Rlimit
		if unix.Getrlimit(what, &l) == nil && l.Cur < math.MaxInt64 { // else there is none
			limits = append(limits, int64(l.Cur))
		}
	}
	return limits
}

// readLimit returns the number in a file, 0 if there is none.
func readLimit(name string) int64 {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
