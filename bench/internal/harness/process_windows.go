package harness

import (
	"os"
	"os/exec"
)

func isolate(*exec.Cmd) {}

// settles: settle does nothing here.
const settles = false

func settle() {}

func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill()
	}
}

func endGroup() {}

// maxRSS: not measured here.
func maxRSS(*os.ProcessState) int64 { return 0 }
