package workload

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/result"
)

// usage is what the process has used up to a moment.
type usage struct {
	cpu  time.Duration // user and system, all threads
	peak int64         // greatest resident size, bytes
	now  int64         // resident size, bytes
	ok   bool

	read int64 // bytes read from the device; -1: not counted here
}

const notCounted = "this system does not count it"

// Begin marks the end of the preparations: data and keys are made, the engine is
// not open yet.
func (r *Recorder) Begin() {
	r.device = deviceBytes(r.dir)
	if r.before = readUsage(); r.before.ok {
		r.Set(result.RSSBefore, float64(r.before.now))
	}
}

// End marks the end of what counts and records CPU time since Begin, the peak of
// resident memory, preparations included, and what the device has written since Begin
// once everything that is dirty is written back.
func (r *Recorder) End() {
	r.endUsage(readUsage())
	if r.device < 0 {
		r.None("the file system is not on one block device whose writes are counted", result.Written)
		return
	}
	writeBack(r.dir)
	if n := deviceBytes(r.dir) - r.device; n > 0 {
		r.Set(result.Written, float64(n))
		return
	}
	r.None("it writes nothing", result.Written)
}

func (r *Recorder) endUsage(after usage) {
	if !after.ok || !r.before.ok {
		return
	}
	r.Set(result.CPU, float64(after.cpu-r.before.cpu-r.again))
	if after.peak > 0 {
		r.Set(result.PeakRSS, float64(after.peak))
	}
}

// onlyWholeWork takes the CPU time, the peak of resident memory and what was written back where
// some of the operations have no time: what did not do them used less for less work. Where
// nothing at all has a figure they stay as they are.
func (r *Recorder) onlyWholeWork(columns []result.Column) {
	var left []string
	some := false
	for _, c := range columns {
		_, none := r.NA[c.Key]
		some = some || !none
		if none && c.Unit == result.NanosPerOp {
			left = append(left, c.Title)
		}
	}
	if _, none := r.NA[result.CPU]; none || !some || len(left) == 0 {
		return
	}
	r.None("it did not do all of the work: "+strings.Join(left, ", "), result.PeakRSS, result.CPU, result.Written)
}

// Kilobytes finds "name   123 kB" in a file of /proc and returns bytes.
func Kilobytes(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		return n * 1024, err == nil
	}
	return 0, false
}

// bytesRead asks /proc, where there is one, what this process has read from the device;
// -1: nobody knows.
func bytesRead() int64 {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "read_bytes:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// residentMemory asks /proc, where there is one. For the peak it is preferred to
// getrusage, whose figure on Linux begins with the size of the parent at the fork.
func residentMemory() (peak, now int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	peak, _ = Kilobytes(string(status), "VmHWM:")
	now, _ = Kilobytes(string(status), "VmRSS:")
	return peak, now
}
