//go:build unix && !linux

package harness

import (
	"os/exec"
	"syscall"
)

func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// settles: settle does nothing here.
const settles = false

func settle() {}
