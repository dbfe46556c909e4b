package harness

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolate gives the child a process group of its own, to be killed as one, and
// a signal when the harness dies.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// settles: settle does something here.
const settles = true

// settle writes dirty pages back, so that the next cell does not wait for the last.
func settle() { unix.Sync() }
