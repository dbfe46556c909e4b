package harness

import (
	"os"
	"strconv"
	"strings"
)

// processorTimes returns, in ticks of all processors since the system was started, what the
// host of a virtual machine gave to others, and everything.
func processorTimes() (stolen, all int64, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	return parseProcessorTimes(string(text))
}

// parseProcessorTimes reads proc(5)'s /proc/stat: user, nice, system, idle, iowait, irq,
// softirq and steal; what follows is part of user and nice.
func parseProcessorTimes(text string) (stolen, all int64, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const steal = 8
	if len(fields) <= steal || fields[0] != "cpu" {
		return 0, 0, false
	}
	for i, field := range fields[1 : steal+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		all += n
		if i+1 == steal {
			stolen = n
		}
	}
	return stolen, all, true
}
