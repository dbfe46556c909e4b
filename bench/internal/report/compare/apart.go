package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cairndb/cairn/bench/internal/result"
)

// apart lists the conditions in which two runs differ: a difference between figures
// may be a difference between those.
func apart(a, b *result.Run) []string {
	var out []string
	add := func(what string, x, y any) {
		if s, t := fmt.Sprint(x), fmt.Sprint(y); s != t {
			out = append(out, fmt.Sprintf("%s: %s, then %s", what, orNone(s), orNone(t)))
		}
	}
	add("laboratory's program", a.Build, b.Build)
	add("system", a.Machine.OS+"/"+a.Machine.Arch, b.Machine.OS+"/"+b.Machine.Arch)
	add("kernel", a.Machine.Kernel, b.Machine.Kernel)
	add("processor", a.Machine.CPU, b.Machine.CPU)
	add("cores for Go", a.Machine.Cores, b.Machine.Cores)
	add("memory", a.Machine.MemoryBytes, b.Machine.MemoryBytes)
	add("Go", a.Machine.Go, b.Machine.Go)
	add("environment", strings.Join(a.Machine.Environment, " "), strings.Join(b.Machine.Environment, " "))
	add("file system", a.Machine.Filesystem, b.Machine.Filesystem)
	add("read-ahead of the disk", a.Machine.ReadAhead, b.Machine.ReadAhead)
	add("seed", a.Data.Seed, b.Data.Seed)
	add("compressibility of the data", a.Data.Snappy4K, b.Data.Snappy4K)
	add("rounds", a.Rounds, b.Rounds)
	add("dirty pages written back between cells", a.Settled, b.Settled)
	if x, y := float64(a.Machine.SyncDelay), float64(b.Machine.SyncDelay); moved(x, y) > 20 {
		add("one sync", a.Machine.SyncDelay, b.Machine.SyncDelay)
	}
	return slices.Concat(out, engineVersions(a, b), workloads(a, b))
}

// workloads tells of tables that are of other work, or whose figures have another unit.
func workloads(a, b *result.Run) []string {
	first := map[string]result.Workload{}
	for _, w := range a.Workloads {
		first[w.ID] = w
	}
	var out []string
	for _, w := range b.Workloads {
		was, both := first[w.ID]
		if !both {
			continue
		}
		if !slices.Equal(was.Conditions, w.Conditions) {
			out = append(out, w.ID+": other conditions")
		}
		for _, c := range w.Columns {
			i := slices.IndexFunc(was.Columns, func(d result.Column) bool { return d.Key == c.Key })
			if i >= 0 && was.Columns[i].Unit != c.Unit {
				out = append(out, fmt.Sprintf("%s: the unit of %s: %s, then %s", w.ID, c.Title, was.Columns[i].Unit, c.Unit))
			}
		}
	}
	return out
}

func engineVersions(a, b *result.Run) []string {
	versions := map[string]string{}
	for _, e := range a.Engines {
		versions[e.Name] = e.Version
	}
	var out []string
	for _, e := range b.Engines {
		was, both := versions[e.Name]
		delete(versions, e.Name)
		switch {
		case !both:
			out = append(out, e.Name+": in the second run only")
		case was != e.Version:
			out = append(out, fmt.Sprintf("%s: version %s, then %s", e.Name, orNone(was), orNone(e.Version)))
		}
	}
	for _, e := range a.Engines {
		if _, left := versions[e.Name]; left {
			out = append(out, e.Name+": in the first run only")
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
