package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Machine describes where this process runs and how long a sync takes in dir.
func Machine(dir string) (result.Machine, error) {
	delay, err := syncDelay(dir, 15)
	if err != nil {
		return result.Machine{}, fmt.Errorf("measuring the delay of a sync in %s: %w", dir, err)
	}
	name, volatile := filesystem(dir)
	return result.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		Kernel: firstLine("/proc/sys/kernel/osrelease"), CPU: cpuModel(),
		Cores: runtime.GOMAXPROCS(0), MemoryBytes: memoryBytes(),
		Load: loadAverages(), Environment: environment(),
		Filesystem: name, Volatile: volatile, ReadAhead: readAhead("/sys/dev/block", dir), SyncDelay: delay,
	}, nil
}

// syncDelay is the median of so many 4 KiB appends with fsync.
func syncDelay(dir string, count int) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "sync-*")
	if err != nil {
		return 0, err
	}
	_ = os.Remove(f.Name()) // refused on Windows while it is open
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	delays := make([]time.Duration, count)
	for i := range delays {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		delays[i] = time.Since(start)
	}
	slices.Sort(delays)
	return delays[len(delays)/2], nil
}

func environment() []string {
	var set []string
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOAMD64"} {
		if v := os.Getenv(name); v != "" {
			set = append(set, name+"="+v)
		}
	}
	return set
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memoryBytes is the machine's memory or this cgroup's limit, whichever is less.
func memoryBytes() int64 {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	total, _ := workload.Kilobytes(string(info), "MemTotal:")
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n, err := strconv.ParseInt(firstLine(file), 10, 64); err == nil && n < total {
			total = n
		}
	}
	return total
}

func loadAverages() string {
	fields := strings.Fields(firstLine("/proc/loadavg"))
	if len(fields) < 3 {
		return ""
	}
	return strings.Join(fields[:3], " ")
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// Place chooses the directory for the data: the one asked for, else the system's
// for temporary files, else, if that is memory, the working directory.
func Place(asked string) (string, error) {
	if asked != "" {
		if err := os.MkdirAll(asked, 0o755); err != nil {
			return "", err
		}
		trial, err := os.MkdirTemp(asked, ".cairn-bench-*")
		if err == nil {
			err = os.Remove(trial)
		}
		if err != nil {
			return "", err
		}
		return filepath.Abs(asked)
	}
	if _, volatile := filesystem(os.TempDir()); !volatile {
		return os.TempDir(), nil
	}
	return os.Getwd()
}
