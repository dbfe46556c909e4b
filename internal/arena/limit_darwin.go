package arena

import "golang.org/x/sys/unix"

func physicalMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}

func groupLimits() []int64 { return nil }

func processLimits() []int64 { return nil }
