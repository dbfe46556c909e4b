package published

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cairndb/cairn/bench/internal/result"
)

// engines is the order of rows.
var engines = []string{"lmdb", "boltdb", "bbolt", "leveldb", "goleveldb", "rocksdb", "pebble", "badger", "nutsdb", "tokyocabinet", "pogreb"}

type paged struct {
	Source  string
	Pairs   int
	Engines map[string]struct {
		Write float64 `json:"write_s"`
		Read  float64 `json:"read_s"`
		Disk  string
	}
	Processes struct {
		Ops          int
		LMDB, BoltDB sharing
	}
}

// sharing is one engine under one writing process and three that read.
type sharing struct {
	Pure  float64   `json:"pure_write_ms"`
	Write float64   `json:"concurrent_write_ms"`
	Read  []float64 `json:"concurrent_read_ms"`
}

func (p paged) articles() []Article {
	set := Set{Title: "10 groups of 50,000 pairs", N: p.Pairs, ValueBytes: 1}
	for _, name := range engines {
		if e, ok := p.Engines[name]; ok {
			set.Figures = append(set.Figures,
				Figure{Engine: name, Title: "write", Columns: []string{"put", "write", "load"}, Unit: result.NanosPerOp, Value: perOp(e.Write*1e9, p.Pairs)},
				Figure{Engine: name, Title: "read", Columns: []string{"get", "read"}, Unit: result.NanosPerOp, Value: perOp(e.Read*1e9, p.Pairs)},
				Figure{Engine: name, Title: "disk per group", Columns: []string{"disk"}, Unit: result.Bytes, Value: sumOfSizes(e.Disk)})
		}
	}
	return []Article{
		{Name: "W0", Workload: "w0", Source: p.Source, Sets: []Set{set}},
		{Name: "W0 processes", Workload: "processes", Source: p.Source, Sets: []Set{p.processes()}},
	}
}

func (p paged) processes() Set {
	n := p.Processes.Ops
	set := Set{Title: "one writer beside three readers"}
	for _, e := range []struct {
		name string
		sharing
	}{{"lmdb", p.Processes.LMDB}, {"boltdb", p.Processes.BoltDB}} {
		slowest := slices.Max(e.Read)
		set.Figures = append(set.Figures,
			Figure{Engine: e.name, Title: "write alone", Columns: []string{"write_alone", "alone", "put_alone"}, Unit: result.NanosPerOp, Value: perOp(e.Pure*1e6, n)},
			Figure{Engine: e.name, Title: "write beside readers", Columns: []string{"write", "put"}, Unit: result.NanosPerOp, Value: perOp(e.Write*1e6, n)},
			Figure{Engine: e.name, Title: "read, slowest of three", Columns: []string{"read_slowest", "read_max", "read", "get"}, Unit: result.NanosPerOp, Value: perOp(slowest*1e6, n)})
	}
	set.Figures = append(set.Figures, Figure{Engine: "leveldb", Title: "open beside another process", Failed: "resource temporarily unavailable"})
	return set
}

type lifecycle struct {
	Source, Remarks string
	Sync10          map[string][]float64 `json:"sync_10000"`
	Sync10Disk      map[string]float64   `json:"sync_10000_disk_MB"`
	Sync100         map[string][]float64 `json:"sync_100000"`
	Sync100Disk     map[string]float64   `json:"sync_100000_disk_MB"`
	NoSync100       map[string][]float64 `json:"nosync_100000"`
}

func (l lifecycle) article() Article {
	return Article{Name: "W1", Workload: "w1", Source: l.Source, Remarks: l.Remarks, Sets: []Set{
		lifecycleSet("10,000 keys, sync on", 10_000, "sync=on", l.Sync10, l.Sync10Disk),
		lifecycleSet("100,000 keys, sync on", 100_000, "sync=on", l.Sync100, l.Sync100Disk),
		lifecycleSet("100,000 keys, sync off", 100_000, "sync=off", l.NoSync100, nil),
	}}
}

// lifecyclePhases: the article's list of seconds, in its order, and our columns.
var lifecyclePhases = []struct{ title, column string }{
	{"put in order", "put"}, {"get at random", "get"}, {"delete at random", "delete"},
	{"put at random", "put2"}, {"iterate", "keys"}, {"total", "total"},
}

func lifecycleSet(title string, n int, sync string, seconds map[string][]float64, disk map[string]float64) Set {
	set := Set{Title: title, N: n, ValueBytes: 4096, Sync: sync}
	for _, name := range engines {
		for i, s := range seconds[name] {
			p := lifecyclePhases[i]
			f := Figure{Engine: name, Title: p.title, Columns: []string{p.column}, Unit: result.NanosPerOp, Value: perOp(s*1e9, n)}
			if p.column == "total" {
				f.Unit, f.Value = result.Nanos, s*1e9
			}
			set.Figures = append(set.Figures, f)
		}
		if mb, ok := disk[name]; ok {
			set.Figures = append(set.Figures, diskFigure(name, mb*(1<<20)))
		}
	}
	return set
}

// counts are the ns/op, B/op and allocs/op of testing.B.
type counts [3]float64

type single struct {
	Source, Remarks        string
	Badger, BoltDB, NutsDB map[string]counts
}

func (s single) article() Article {
	a := Article{Name: "W2", Workload: "w2", Source: s.Source, Remarks: s.Remarks}
	for _, size := range []int{64, 128, 256, 512} {
		set := Set{Title: fmt.Sprintf("put of %d B", size), ValueBytes: size}
		key := fmt.Sprintf("put%d", size)
		for _, e := range s.each() {
			set.Figures = append(set.Figures, perPair(e.name, "put", e.figures[key], 1, []string{key, "put"})...)
		}
		a.Sets = append(a.Sets, set)
	}
	gets := Set{Title: "get"}
	for _, e := range s.each() {
		gets.Figures = append(gets.Figures, perPair(e.name, "get", e.figures["get"], 1, []string{"get"})...)
	}
	gets.Figures = append(gets.Figures, perPair("nutsdb-keys", "get", s.NutsDB["get_keys_in_ram_mode"], 1, []string{"get"})...)
	a.Sets = append(a.Sets, gets)
	return a
}

type namedCounts struct {
	name    string
	figures map[string]counts
}

func (s single) each() []namedCounts {
	return []namedCounts{{"boltdb", s.BoltDB}, {"badger", s.Badger}, {"nutsdb", s.NutsDB}}
}

type wholeSet struct {
	Source, Remarks string
	Pairs10         wholeSetSize `json:"pairs_10"`
	Pairs10000      wholeSetSize `json:"pairs_10000"`
	Pairs100000     wholeSetSize `json:"pairs_100000"`
}

type wholeSetSize struct {
	Boltdb, Bbolt, Goleveldb, Pebble, Tokyocabinet, Pogreb map[string]counts
	Disk                                                   map[string]string
}

func (w wholeSet) article() Article {
	return Article{Name: "W4", Workload: "w4", Source: w.Source, Remarks: w.Remarks, Sets: []Set{
		w.Pairs10.set("10 pairs", 10), w.Pairs10000.set("10,000 pairs", 10_000), w.Pairs100000.set("100,000 pairs", 100_000),
	}}
}

func (w wholeSetSize) set(title string, n int) Set {
	set := Set{Title: title, N: n, ValueBytes: 1480}
	for _, e := range []namedCounts{{"boltdb", w.Boltdb}, {"bbolt", w.Bbolt}, {"goleveldb", w.Goleveldb},
		{"pebble", w.Pebble}, {"tokyocabinet", w.Tokyocabinet}, {"pogreb", w.Pogreb}} {
		for _, op := range []string{"put", "get"} {
			if c, ok := e.figures[op]; ok {
				set.Figures = append(set.Figures, perPair(e.name, op, c, n, []string{op})...)
			}
		}
		if size, err := parseSize(w.Disk[e.name]); err == nil {
			set.Figures = append(set.Figures, diskFigure(e.name, size))
		}
	}
	return set
}

// perPair divides what a pass over n pairs took. Columns are those of the time; the
// others have a suffix.
func perPair(engine, title string, c counts, n int, columns []string) []Figure {
	suffixed := func(suffix string) []string {
		var out []string
		for _, col := range columns {
			out = append(out, col+suffix)
		}
		return out
	}
	return []Figure{
		{Engine: engine, Title: title, Columns: columns, Unit: result.NanosPerOp, Value: perOp(c[0], n)},
		{Engine: engine, Title: title + " B/op", Columns: suffixed("_B"), Unit: result.BytesPerOp, Value: perOp(c[1], n)},
		{Engine: engine, Title: title + " allocs/op", Columns: suffixed("_allocs"), Unit: result.AllocsPerOp, Value: perOp(c[2], n)},
	}
}

// diskFigure is a size as du prints it: of the blocks the file system gave.
func diskFigure(engine string, bytes float64) Figure {
	return Figure{Engine: engine, Title: "disk", Columns: []string{"disk_allocated"}, Unit: result.Bytes, Value: bytes}
}

func perOp(total float64, n int) float64 { return total / float64(n) }

// sumOfSizes adds the sizes in a text like "3.6M data + 8K lock per group".
func sumOfSizes(s string) float64 {
	sum := 0.0
	for _, word := range strings.Fields(s) {
		if size, err := parseSize(word); err == nil {
			sum += size
		}
	}
	return sum
}

// parseSize reads the sizes that du prints: powers of 1,024.
func parseSize(s string) (float64, error) {
	i := strings.IndexAny(s, "KMG")
	if i < 1 {
		return 0, fmt.Errorf("size %q", s)
	}
	v, err := strconv.ParseFloat(s[:i], 64)
	return v * map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[s[i]], err
}
