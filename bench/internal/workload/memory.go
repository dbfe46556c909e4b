package workload

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "memory",
		Title:      "Larger than memory: reads of a set at least four times the memory an engine is allowed",
		Variant:    "sound",
		FullOnly:   true,
		QuickN:     []int{262_144},
		FullN:      []int{524_288},
		ValueBytes: 1024,
		Conditions: memoryConditions,
		Columns:    memoryColumns,
		Estimate:   memoryEstimate,
		Run:        runMemory,
		Commits:    []CommitKind{},
		Vary:       varyMemory,
	})
}

// MemoryOfItsOwn is what the process may have beside the memory its engine is allowed: for
// the program, the Go runtime and the data to write.
const MemoryOfItsOwn = 48 << 20

// ofTheRuntime is what of that the Go runtime is given, for the data to write are on its heap.
// The rest is for the program: garbage in place of it would leave nothing to the page cache.
const ofTheRuntime = MemoryOfItsOwn / 2

// memoryTimes is how many times the memory allowed the data are.
const memoryTimes = 4

// leastMemory is what an engine is allowed at least, bytes: less is an error to one.
const leastMemory = 1 << 20

// varyMemory: the set is what the count says, and the memory a quarter of it. It is
// loaded without syncs in either mode, so one cell suffices.
func varyMemory(p Params, _ Scale) []Params {
	if p.Sync {
		return nil
	}
	p.Memory = max(leastMemory, p.DataBytes()/memoryTimes)
	return []Params{p}
}

var memoryColumns = []result.Column{
	{Key: "load", Title: "load", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "uniform", Title: "get uniform", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "zipf", Title: "get zipf", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "pairs", Title: "scan pairs", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "mixed", Title: "gets and puts", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: ReadColumn, Title: "read per uniform get", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
}

// memoryReads is how many gets of each sort are timed.
func memoryReads(n int) int { return min(n, 30_000) }

func memoryConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d pairs are loaded in shuffled order in batches of %d, not synced, closed, opened again; then %d gets of uniform keys, %d of keys by a Zipf law (exponent 1.1, the popular ones scattered), a scan of all pairs, and %d times a get or a put (half and half, not synced) of a uniform key", p.N, loadBatch, memoryReads(p.N), memoryReads(p.N), memoryReads(p.N)),
		allowedCondition(fmt.Sprintf("%d MiB, %s", p.Memory>>20, shareOfSet(p))),
		heldCondition,
		"peak RSS counts pages of mapped files too, which the kernel can take back; every value read is compared",
	}
}

// allowedCondition says who is told of the memory allowed.
func allowedCondition(memory string) string {
	return "the memory allowed is " + memory + ": engines with an option for it are told (the others: n/a under memory in the list of abilities), the Go runtime is given 80 % of it and " + strconv.Itoa(ofTheRuntime>>20) + " MiB as GOMEMLIMIT, for the data to write are on its heap too"
}

// heldCondition says who holds the process to it.
var heldCondition = "where the machine lets this program make a memory cgroup, the kernel holds the process to it and " + strconv.Itoa(MemoryOfItsOwn>>20) + " MiB for itself, page cache included; a row that is not done then after 10 minutes has no figures; a note at each row says what bounded it. Where nothing did, the page cache may hold the whole set, and the figures are of memory"

// bound gives the Go runtime its share of the memory allowed and of the process's own, and
// notes whether the engine can be told. It reports false, and records why, if the engine keeps nothing on disk.
func bound(rec *Recorder, d engine.Driver, p Params, columns []result.Column) bool {
	if why, no := d.Info.Cannot[engine.CanDisk]; no {
		rec.noneOf(why, columns)
		return false
	}
	debug.SetMemoryLimit(p.Memory*8/10 + ofTheRuntime)
	if why, no := d.Info.Cannot[engine.CanMemory]; no {
		rec.Note("is not told how much memory it may use: " + why)
	}
	return true
}

// shareOfSet says what the memory allowed is of the set, and whether that is little
// enough.
func shareOfSet(p Params) string {
	if p.Memory > p.DataBytes()/memoryTimes {
		return fmt.Sprintf("the least every engine takes, %.0f %% of the set: TOO SMALL A SET for what this workload asks", 100*float64(p.Memory)/float64(p.DataBytes()))
	}
	return "a quarter of the set"
}

func memoryEstimate(p Params, e engine.Info, _ time.Duration) time.Duration {
	perKey := 25 * time.Microsecond
	if isBolt(e) || !e.Can(engine.CanBatch) {
		perKey = 60 * time.Microsecond
	}
	return time.Second + time.Duration(p.N)*perKey + time.Duration(memoryReads(p.N))*3*60*time.Microsecond
}

func runMemory(rec *Recorder, d engine.Driver, dir string, p Params) error {
	if !bound(rec, d, p, memoryColumns) {
		return nil
	}
	e, opts := expect(p), engine.Options{Memory: p.Memory, Keys: p.N}
	rec.Begin()
	store, err := d.Open(dir, opts)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if _, err := rec.Phase("load", p.N, func() error { return e.load(rec, store, data.Order(p.N, p.Seed, 12)) }); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := recordDisk(rec, dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	if store, err = d.Open(dir, opts); err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	if err := e.readLarge(rec, d, store, p); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("last close: %w", err)
	}
	rec.End()
	return nil
}

func (e *expectation) readLarge(rec *Recorder, d engine.Driver, store engine.Store, p Params) error {
	reads := memoryReads(p.N)
	for _, key := range []string{"uniform", "zipf"} {
		order := map[string]func(n, reads int, seed uint64) []int32{"uniform": uniform, "zipf": zipf}[key](p.N, reads, p.Seed)
		before := readUsage().read
		if _, err := rec.Phase(key, reads, func() error { return e.getAll(store, order) }); err != nil {
			return err
		}
		if key == "uniform" {
			recordRead(rec, before, reads)
		}
	}
	if walker, ok := store.(engine.PairWalker); ok {
		w := e.newWalk(d.Info.Can(engine.CanOrder))
		if _, err := rec.Phase("pairs", p.N, func() error { return w.end(walker.Pairs(w.pair)) }); err != nil {
			return err
		}
	} else {
		rec.None(d.Info.Cannot[engine.CanPairs], "pairs")
	}
	m := newMixed(e, rand.New(rand.NewPCG(p.Seed, 19)))
	m.store = store
	_, err := rec.Phase("mixed", reads, func() error {
		for range reads {
			if _, err := m.operation(); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// ReadColumn is what the device has read for each uniform get. It is a figure, nothing
// included, where the kernel bounds the page cache, and for nobody elsewhere.
const ReadColumn = "uniform_read"

// recordRead records what the device has read since before for each of so many operations.
func recordRead(rec *Recorder, before int64, ops int) {
	if before < 0 {
		rec.None(notCounted, ReadColumn)
		return
	}
	rec.Set(ReadColumn, float64(readUsage().read-before)/float64(ops))
}

func uniform(n, reads int, seed uint64) []int32 {
	rng, order := rand.New(rand.NewPCG(seed, 13)), make([]int32, reads)
	for i := range order {
		order[i] = rng.Int32N(int32(n))
	}
	return order
}

// zipf scatters the popular keys over the whole set.
func zipf(n, reads int, seed uint64) []int32 {
	rng, order := rand.New(rand.NewPCG(seed, 14)), make([]int32, reads)
	law, scattered := rand.NewZipf(rng, 1.1, 1, uint64(n-1)), data.Order(n, seed, 15)
	for i := range order {
		order[i] = scattered[law.Uint64()]
	}
	return order
}
