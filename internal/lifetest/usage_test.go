package lifetest

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/cairndb/cairn/internal/arena"
)

// usage is what a process holds.
type usage struct {
	Peak       int64 // bytes, the kernel's VmHWM; 0 where the kernel does not tell
	Resident   int64 // bytes, VmRSS
	HeapInuse  int64 // bytes of the Go heap, without garbage returned to the system
	HeapSys    int64
	Goroutines int
	Files      int   // open descriptors
	Maps       int   // mappings of files of a store
	Mapped     int64 // bytes of anonymous mappings by the arena package
}

func measure() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := usage{
		HeapInuse: int64(m.HeapInuse), HeapSys: int64(m.HeapSys - m.HeapReleased),
		Goroutines: runtime.NumGoroutine(), Mapped: arena.Mapped(),
	}
	eachLine("/proc/self/status", func(line string) {
		u.Peak += kilobytes(line, "VmHWM:")
		u.Resident += kilobytes(line, "VmRSS:")
	})
	if names, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.Files = len(names)
	}
	eachLine("/proc/self/maps", func(line string) {
		if strings.HasSuffix(line, ".sst") || strings.HasSuffix(line, ".log") || strings.Contains(line, "MANIFEST") {
			u.Maps++
		}
	})
	return u
}

func kilobytes(line, label string) int64 {
	rest, ok := strings.CutPrefix(line, label)
	if !ok {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
	return n << 10
}

func eachLine(path string, fn func(string)) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fn(s.Text())
	}
}

// diskBytes returns the apparent size of all files under dir, and their names.
func diskBytes(dir string) (n int64, names []string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
				names = append(names, d.Name())
			}
		}
		return nil
	})
	return n, names
}

// logBytes returns the bytes of a store's log segments and of the space it has put aside.
func logBytes(dir string) (n int64) {
	_, names := diskBytes(dir)
	for _, name := range names {
		if filepath.Ext(name) == ".log" || name == "RESERVE" {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				n += info.Size()
			}
		}
	}
	return n
}
