//go:build unix

package workload

import (
	"syscall"
	"time"
)

func readUsage() usage {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return usage{}
	}
	u := usage{cpu: time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), ok: true}
	u.peak, u.now = residentMemory()
	u.read = bytesRead()
	return u
}
