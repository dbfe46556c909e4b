//go:build linux && (amd64 || arm64)

package syncs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// call is what a reported call means.
type call struct {
	name      string
	sync      bool // makes something durable
	elsewhere bool // not on a file of the store
	mark      bool // of Begin or End
	ring      bool // sets up asynchronous I/O
}

// look says what a call means. The caller stands still, so /proc tells the truth
// about its descriptors.
func (t *Tracer) look(n notice) call {
	c := call{name: watched[uint32(n.number)]}
	descriptor := int32(n.args[0])
	switch c.name {
	case "fsync", "fdatasync":
		c.sync = true
		c.elsewhere = !t.within(descriptorPath(n.thread, descriptor))
	case "sync", "syncfs":
		c.sync = true
	case "msync":
		c.sync = n.args[2]&unix.MS_SYNC != 0
		c.elsewhere = c.sync && !t.within(mappedPath(n.thread, n.args[0]))
	case "sync_file_range":
		c.mark = descriptor == markDescriptor
	case "io_uring_setup", "io_submit":
		c.ring = true
	default:
		c.sync = syncedWrite(c.name, n, descriptor)
		c.elsewhere = c.sync && !t.within(descriptorPath(n.thread, descriptor))
	}
	return c
}

func syncedWrite(name string, n notice, descriptor int32) bool {
	if name == "pwritev2" && n.args[5]&(unix.RWF_DSYNC|unix.RWF_SYNC) != 0 {
		return true
	}
	return openFlags(n.thread, descriptor)&unix.O_DSYNC != 0 // O_SYNC includes it
}

// openFlags reads with which flags a descriptor was opened.
func openFlags(thread uint32, descriptor int32) uint64 {
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", thread, descriptor))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		if rest, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, _ := strconv.ParseUint(strings.TrimSpace(rest), 8, 64)
			return flags
		}
	}
	return 0
}

func descriptorPath(thread uint32, descriptor int32) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, descriptor))
	return path
}

// mappedPath finds the file that is mapped at an address.
func mappedPath(thread uint32, address uint64) string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", thread))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil || address < from || address >= to {
			continue
		}
		if at := strings.IndexByte(line, '/'); at >= 0 {
			return strings.TrimSpace(line[at:])
		}
	}
	return ""
}

func (t *Tracer) within(path string) bool {
	return path == t.dir || strings.HasPrefix(path, t.dir+string(filepath.Separator))
}
