package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// killRounds is how often killMarked looks for processes that were started while it
// killed the others.
const killRounds = 100

// killMarked kills all processes, but this one, that children of the run in root have
// started, directly or not, and returns how many it found at first.
func killMarked(root string) (found int) {
	for round := range killRounds {
		all := marked(root)
		if round == 0 {
			found = len(all)
		}
		if len(all) == 0 {
			break
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return found
}

// marked lists the processes with the mark of the run in their environment. Those that
// have ended, waited for or not, have none.
func marked(root string) (pids []int) {
	mark := []byte("\x00" + childMark + "=" + root + "\x00")
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if set, err := os.ReadFile(name); err == nil && bytes.Contains(append([]byte{0}, set...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}
