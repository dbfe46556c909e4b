package workload

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

// singleSizes are the values of W2, bytes.
var singleSizes = []int{64, 128, 256, 512}

// singleGets is how many keys there are to get, as in the article.
const singleGets = 10_000

// singleReads is how many gets there are at least: fewer take some milliseconds.
const singleReads = 100_000

func init() {
	Register(Workload{
		Name:       "w2",
		Title:      "W2 single puts through Go's testing.B: put of 64, 128, 256, 512 B, one commit each; get",
		Variant:    "sound",
		QuickN:     []int{500},
		FullN:      []int{20_000},
		LargeToo:   true,
		Modes:      singleModes,
		ValueBytes: singleSizes[len(singleSizes)-1],
		Unfit:      fixedSizes,
		Conditions: singleConditions,
		Columns:    singleColumns(),
		Estimate:   singleEstimate,
		Run:        runSingle,
	})
	Register(Workload{
		Name:       "w2",
		Title:      "W2 single puts through Go's testing.B, as published",
		Variant:    "published",
		QuickN:     []int{500},
		FullN:      []int{20_000},
		ValueBytes: singleSizes[len(singleSizes)-1],
		Unfit:      asPublished,
		Conditions: singlePublishedConditions,
		Columns:    singleColumns(),
		Estimate:   singleEstimate,
		Run:        runSingle,
		Article:    []string{"nutsdb", "nutsdb-keys", "boltdb", "badger"},
	})
}

// singleModes: without syncs some hundred puts take a millisecond, too little to time.
func singleModes(s Scale, large bool) []bool {
	switch {
	case len(s.Counts) > 0 || s.Full && large:
		return []bool{true, false}
	case large:
		return []bool{false}
	}
	return []bool{true}
}

func fixedSizes(s Scale) string {
	if s.Data != nil || s.ValueBytes > 0 {
		return "its sizes of values are its columns"
	}
	return ""
}

func singleColumns() []result.Column {
	type what struct{ key, title string }
	ops := []what{}
	for _, size := range singleSizes {
		ops = append(ops, what{fmt.Sprintf("put%d", size), fmt.Sprintf("put %d B", size)})
	}
	ops = append(ops, what{"get", "get"})
	var columns []result.Column
	for _, unit := range []struct {
		suffix, group, title string
		unit                 result.Unit
	}{{"", "time", "", result.NanosPerOp}, {"_B", "bytes", " B/op", result.BytesPerOp}, {"_allocs", "allocations", " allocs/op", result.AllocsPerOp}} {
		for _, op := range ops {
			columns = append(columns, result.Column{Key: op.key + unit.suffix, Title: op.title + unit.title, Group: unit.group, Unit: unit.unit, Ranked: true, Writes: op.key != "get" && unit.suffix == ""})
		}
	}
	return columns
}

func singleConditions(p Params) []string {
	return []string{
		fmt.Sprintf("testing.Benchmark with b.N = %d; a new store for each size; keys of %d B in order, made beforehand; values from the pool, every one another", p.N, p.keyBytes()),
		"every put is a commit of its own" + syncCondition(p.Sync) + "; opening and closing are not timed",
		fmt.Sprintf("get: %d pairs of 64 B, batch-written and in the store's memory or the page cache; b.N = %d random keys, each get one by itself, every byte compared", min(singleGets, p.N), max(singleReads, p.N)),
		"B/op and allocs/op are of the Go heap of the whole process, background work included",
		"after close each store is opened again and every key read (not timed)",
	}
}

func singlePublishedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("testing.Benchmark with b.N = %d; one store, the sizes one after the other over the same keys: all puts after those of 64 B overwrite", p.N),
		"keys (key_0000000 and so on) are made by fmt.Sprintf inside the time, every value of a size is the same text",
		"every put is a commit of its own" + syncCondition(p.Sync),
		fmt.Sprintf("get: %d pairs of 64 B are put, then always the same key is asked for, number 99", min(singleGets, p.N)),
		"unsound: one hot key measures the shortest path of a cache; equal values hide a wrong one and compress to nothing; formatting is counted; the sizes do not begin from the same store",
		"unsound: the article compares defaults of 2019, Bolt, Badger and NutsDB with syncs: compare with sync=on; its get of Badger never reads the value, here it does, as every engine must",
	}
}

func singleEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	gets, reads := min(singleGets, p.N), max(singleReads, p.N)
	if p.Variant == "published" {
		reads = p.N
	}
	return starting + times(12, c.opening()) + times(4*p.N, c.put()) + times(gets, c.batched()) + times(reads, c.get())
}

// single is one run of W2.
type single struct {
	rec  *Recorder
	p    Params
	d    engine.Driver
	dir  string
	made int // stores

	later []func() error // looks at closed stores, for when everything is measured
}

func runSingle(rec *Recorder, d engine.Driver, dir string, p Params) error {
	restore, err := fixedCount(p.N)
	if err != nil {
		return err
	}
	defer restore()
	s := &single{rec: rec, p: p, d: d, dir: dir}
	run := s.sound
	if p.Variant == "published" {
		run = s.published
	}
	if err := run(); err != nil {
		return err
	}
	rec.End()
	for _, look := range s.later {
		if err := look(); err != nil {
			return err
		}
	}
	if why, no := d.Info.Cannot[engine.CanSync]; no && p.Sync {
		for _, size := range singleSizes {
			key := fmt.Sprintf("put%d", size)
			rec.None(why, key, key+"_B", key+"_allocs")
		}
	}
	return nil
}

var initTesting sync.Once

// fixedCount makes testing.Benchmark run n times, so that every engine does the
// same work. The returned function undoes it.
func fixedCount(n int) (restore func(), err error) {
	const name = "test.benchtime"
	if flag.Lookup(name) == nil {
		initTesting.Do(testing.Init)
	}
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, fmt.Sprintf("%dx", n)); err != nil {
		return nil, err
	}
	return func() { _ = flag.Set(name, before) }, nil
}

// benchmark runs fn as a Go benchmark and records it under key.
func (s *single) benchmark(key string, fn func(b *testing.B) error) error {
	err := errors.New("the benchmark was not run")
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		if err = fn(b); err != nil {
			b.FailNow()
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	s.rec.PerOp(key, Span{r.T, r.MemBytes, r.MemAllocs}, r.N)
	return nil
}

// open makes a new store, the clock standing still.
func (s *single) open() (engine.Store, string, error) {
	s.made++
	dir := filepath.Join(s.dir, fmt.Sprintf("store%d", s.made))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, "", err
	}
	store, err := s.d.Open(dir, s.p.options())
	if err != nil {
		return nil, "", fmt.Errorf("open: %w", err)
	}
	return store, dir, nil
}

func (s *single) sound() error {
	all := expect(s.p)
	sized := func(size, n int) *expectation {
		e := *all
		e.size, e.n = size, n
		return &e
	}
	s.rec.Begin()
	for _, size := range singleSizes {
		err := s.benchmark(fmt.Sprintf("put%d", size), func(b *testing.B) error { return s.putNew(b, sized(size, b.N)) })
		if err != nil {
			return err
		}
	}
	return s.getRandom(sized(singleSizes[0], min(singleGets, s.p.N)))
}

// putNew puts the set, b.N pairs, into a new store; whether they are all there is looked
// at later.
func (s *single) putNew(b *testing.B, e *expectation) error {
	store, dir, err := s.open()
	if err != nil {
		return err
	}
	b.ResetTimer()
	for i := range b.N {
		if err := store.Put(e.keys.At(i), e.value(uint64(i))); err != nil {
			return err
		}
	}
	b.StopTimer()
	if !s.d.Info.Can(engine.CanDisk) {
		return e.getAll(store, data.Sequence(b.N))
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	s.later = append(s.later, func() error { return e.survived(s.d, dir, s.p) })
	return nil
}

func (s *single) getRandom(e *expectation) error {
	store, _, err := s.open()
	if err != nil {
		return err
	}
	if err := (set{e, data.Order(e.n, s.p.Seed, 9)}).put(s.rec, s.d.Info, store); err != nil {
		return err
	}
	chooser, err := data.NewChooser(data.Uniform, e.n, 0, s.p.Seed, 10)
	if err != nil {
		return err
	}
	gets := max(s.p.N, singleReads)
	order := chooser.Draw(gets)
	restore, err := fixedCount(gets)
	if err != nil {
		return err
	}
	defer restore()
	err = s.benchmark("get", func(b *testing.B) error { return e.getAll(store, order[:b.N]) })
	if err != nil {
		return err
	}
	return store.Close()
}
