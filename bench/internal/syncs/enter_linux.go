//go:build linux && (amd64 || arm64)

package syncs

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// traceMark in the environment names the descriptor of the socket to the tracer.
const traceMark = "CAIRN_BENCH_TRACE_FD"

// Enter is what a child calls first: if it is to be traced it installs the filter
// and executes the program again, and does not return unless that fails. The
// tracer is told why.
func Enter() error {
	socket, err := strconv.Atoi(os.Getenv(traceMark))
	if err != nil {
		return nil
	}
	runtime.LockOSThread() // the filter is this thread's, and exec keeps it
	if err := enter(socket); err != nil {
		_ = unix.Sendmsg(socket, []byte(err.Error()), nil, nil, 0)
		return err
	}
	return nil
}

func enter(socket int) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// From the filter on, no call on the list may be made before the tracer has the
	// listener: nothing is allocated or printed in between.
	listener, err := install()
	if err != nil {
		return fmt.Errorf("installing a seccomp filter: %w", err)
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		unix.Close(listener)
		return fmt.Errorf("handing the listener over: %w", err)
	}
	unix.Close(listener)
	unix.Close(socket)
	return unix.Exec(program, os.Args, childEnvironment())
}

// childEnvironment: without asynchronous preemption, whose signals would restart
// calls on kernels before 5.19.
func childEnvironment() []string {
	env := []string{"GODEBUG=asyncpreemptoff=1"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, traceMark+"=") && !strings.HasPrefix(e, "GODEBUG=") {
			env = append(env, e)
		}
	}
	return env
}

// Begin tells the tracer, if there is one, that a commit begins. id is new.
func Begin(kind Kind, id uint64) { mark(kind, id, 0) }

// End tells that the commit was acknowledged.
func End(kind Kind, id uint64) { mark(kind, id, 1) }

// mark is a call that fails at once wherever nobody listens.
func mark(kind Kind, id uint64, end int64) {
	_ = unix.SyncFileRange(markDescriptor, int64(id), int64(kind)<<1|end, 0)
}

// markDescriptor cannot be open.
const markDescriptor = -77
