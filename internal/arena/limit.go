package arena

import (
	"math"
	"sync"
)

// fallbackLimit is taken where the platform does not tell its memory.
const fallbackLimit = 2 << 30

// SystemLimit returns how many bytes of memory this process may use: the least of
// the machine's memory, the limits of the control groups it is in and (Linux) its own, RLIMIT_AS and RLIMIT_DATA, as they were
// when it was first asked: to find out takes half of the system calls of an Open.
func SystemLimit() int64 { return systemLimit() }

var systemLimit = sync.OnceValue(func() int64 {
	limit := physicalMemory()
	if limit <= 0 {
		limit = fallbackLimit
	}
	for _, l := range append(groupLimits(), processLimits()...) {
		if l > 0 && l < math.MaxInt64/2 {
			limit = min(limit, l)
		}
	}
	return limit
})
