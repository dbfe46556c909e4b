//go:build linux && (amd64 || arm64)

package syncs

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watched are the calls the kernel reports.
var watched = map[uint32]string{
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_MSYNC: "msync",
	unix.SYS_SYNC_FILE_RANGE: "sync_file_range", unix.SYS_SYNCFS: "syncfs", unix.SYS_SYNC: "sync",
	unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_WRITEV: "writev",
	unix.SYS_PWRITEV: "pwritev", unix.SYS_PWRITEV2: "pwritev2",
	unix.SYS_IO_URING_SETUP: "io_uring_setup", unix.SYS_IO_SUBMIT: "io_submit",
}

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]

// Offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
)

// program reports the watched calls and allows all others. Calls of another
// architecture (32-bit programs) are allowed unseen.
func program() []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	give := func(verdict uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
	}
	equal := func(k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: yes, Jf: no, K: k}
	}
	p := []unix.SockFilter{load(offsetArch), equal(auditArch, 1, 0), give(unix.SECCOMP_RET_ALLOW), load(offsetNumber)}
	for number := range watched {
		p = append(p, equal(number, 0, 1), give(unix.SECCOMP_RET_USER_NOTIF))
	}
	return append(p, give(unix.SECCOMP_RET_ALLOW))
}

// install puts the filter on this thread and returns the descriptor on which the
// kernel reports. Kernels before 5.19 lack the flag that keeps a signal from
// restarting, and so from reporting twice, a call that is being looked at.
func install() (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	filter := program()
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	for _, flags := range []uintptr{
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
	} {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
		if errno == 0 {
			return int(fd), nil
		}
		if err = errno; errno != unix.EINVAL {
			break
		}
	}
	return -1, err
}
