package engine

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// patience is how long an open of an engine that queues for the lock of another
// process waits for it. Such an engine would otherwise wait for ever.
var patience = 30 * time.Second

// busy makes err an ErrBusy, so that a workload can tell a refusal from a fault.
func busy(err error) error { return fmt.Errorf("%w: %w", ErrBusy, err) }

// lockRefused reports whether err is the operating system's word that a lock is
// held, or says so in one of the given phrases where an engine drops the cause.
func lockRefused(err error, phrases ...string) bool {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EWOULDBLOCK) {
		return true
	}
	for _, p := range phrases {
		if strings.Contains(err.Error(), p) {
			return true
		}
	}
	return false
}
