//go:build linux && (amd64 || arm64)

package syncs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lookUp is how often a tracer that hears nothing asks whether the child has ended.
const lookUp = 100 * time.Millisecond

// notice is struct seccomp_notif of the kernel.
type notice struct {
	id     uint64
	thread uint32
	flags  uint32
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
}

// reply is struct seccomp_notif_resp.
type reply struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Tracer counts the sync calls of one child.
type Tracer struct {
	dir    string // of the store
	socket *os.File
	theirs *os.File
	tally  *tally
	held   []heldCall
	ended  atomic.Bool // the child has ended; processes it left behind do not count
	result chan error
}

type heldCall struct {
	id      uint64
	began   int
	release time.Time
}

// Trace prepares a command, which must call Enter first. dir is the store's.
func Trace(cmd *exec.Cmd, dir string) (*Tracer, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	t := &Tracer{dir: dir, socket: os.NewFile(uintptr(pair[0]), "tracer"), theirs: os.NewFile(uintptr(pair[1]), "traced"),
		tally: newTally(), result: make(chan error, 1)}
	cmd.ExtraFiles = append(cmd.ExtraFiles, t.theirs)
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", traceMark, 2+len(cmd.ExtraFiles)))
	return t, nil
}

// Started is called when the command was started, or failed to.
func (t *Tracer) Started() {
	t.theirs.Close()
	go func() { t.result <- t.serve() }()
}

// Wait, called when the child has ended, returns what was seen, and an error if the
// child could not be traced.
func (t *Tracer) Wait() (Report, error) {
	t.ended.Store(true)
	err := <-t.result
	t.socket.Close()
	return t.tally.report, err
}

func (t *Tracer) serve() error {
	listener, err := t.receive()
	if err != nil {
		return err
	}
	defer unix.Close(listener)
	for {
		over, err := t.wait(listener)
		if err != nil || over {
			return err
		}
	}
}

// receive takes the listener from the child, or its complaint.
func (t *Tracer) receive() (int, error) {
	text, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(int(t.socket.Fd()), text, rights, unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return -1, err
	case n == 0:
		return -1, errors.New("the child ended before it could be traced")
	case m == 0:
		return -1, errors.New(string(text[:n]))
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("no listener came: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("no listener came: %v", err)
	}
	return fds[0], nil
}

// wait serves one call, or lets held ones go. It is over when no process is left,
// or only some that the child left behind.
func (t *Tracer) wait(listener int) (over bool, err error) {
	timeout := int(lookUp.Milliseconds())
	if len(t.held) > 0 {
		timeout = max(0, int(time.Until(t.held[0].release).Milliseconds()+1))
	}
	fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, timeout); err != nil && err != unix.EINTR {
		return false, err
	}
	if fds[0].Revents&unix.POLLIN != 0 {
		return false, t.take(listener)
	}
	for len(t.held) > 0 && time.Now().After(t.held[0].release) {
		first := t.held[0]
		t.held = t.held[1:]
		t.tally.syncEnds(first.began)
		if err := proceed(listener, first.id); err != nil {
			return false, err
		}
	}
	return fds[0].Revents&unix.POLLHUP != 0 || t.ended.Load() && len(t.held) == 0, nil
}

func (t *Tracer) take(listener int) error {
	var n notice
	switch err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err {
	case nil:
	case unix.ENOENT, unix.EINTR: // the caller was killed meanwhile
		return nil
	default:
		return err
	}
	c := t.look(n)
	switch {
	case c.mark && n.args[2]&1 == 0:
		t.tally.begin(Kind(n.args[2]>>1), n.args[1])
	case c.mark:
		t.tally.end(n.args[1])
	case c.ring:
		t.tally.report.Ring = true
	case c.sync && c.elsewhere:
		t.tally.report.Elsewhere++
	case c.sync:
		t.held = append(t.held, heldCall{n.id, t.tally.syncBegins(c.name), time.Now().Add(Hold)})
		return nil
	case c.name == "sync_file_range":
		t.tally.report.Ranges++
	}
	return proceed(listener, n.id)
}

// proceed lets a call go on. That the caller is gone is no error.
func proceed(listener int, id uint64) error {
	r := reply{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)); err != nil && err != unix.ENOENT {
		return fmt.Errorf("letting a call go on (needs Linux 5.5): %w", err)
	}
	return nil
}

func ioctl(fd int, request uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
