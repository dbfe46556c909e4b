package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/cairndb/cairn/bench/internal/result"
)

// Benchstat writes the run in the Go benchmark format, a line for each cell and
// column, so that benchstat can compare runs (-col /engine compares engines).
func Benchstat(w io.Writer, run *result.Run) error {
	w = printable{w}
	m := run.Machine
	if _, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/cairndb/cairn/bench\ncpu: %s\n", m.OS, m.Arch, m.CPU); err != nil {
		return err
	}
	for _, c := range run.Cells {
		for _, wl := range run.Workloads {
			if wl.ID != c.Workload || c.Status != result.OK {
				continue
			}
			if err := benchCell(w, wl, c, m.Cores); err != nil {
				return err
			}
		}
	}
	return nil
}

func benchCell(w io.Writer, wl result.Workload, c result.Cell, cores int) error {
	for _, col := range wl.Columns {
		v, ok := c.Metrics[col.Key]
		if !ok {
			continue
		}
		measured := benchValues(wl, c, col, v)
		if measured == "" {
			continue
		}
		name := fmt.Sprintf("Benchmark%s/%s/op=%s/engine=%s-%d", strings.ToUpper(wl.Name), benchID(wl), col.Key, c.Engine, cores)
		if _, err := fmt.Fprintf(w, "%s %s\n", name, measured); err != nil {
			return err
		}
	}
	return nil
}

func benchID(wl result.Workload) string {
	_, rest, _ := strings.Cut(wl.ID, "/")
	return "variant=" + rest
}

// benchValues prints the count and the values of a line. Allocations stand on the
// line of their operation.
func benchValues(wl result.Workload, c result.Cell, col result.Column, v float64) string {
	switch col.Unit {
	case result.NanosPerOp:
		text := fmt.Sprintf("%d %.1f ns/op", wl.N, v)
		if b, ok := c.Metrics[col.Key+"_B"]; ok {
			text += fmt.Sprintf(" %.1f B/op %.3f allocs/op", b, c.Metrics[col.Key+"_allocs"])
		}
		return text
	case result.Nanos:
		return fmt.Sprintf("1 %.0f ns/op", v)
	case result.PerSecond:
		return fmt.Sprintf("1 %.1f ops/s", v)
	case result.Number:
		return fmt.Sprintf("1 %.1f count", v)
	case result.Bytes:
		return fmt.Sprintf("1 %.0f bytes", v)
	}
	return ""
}
