package workload

import (
	"fmt"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "ycsb",
		Title:      "YCSB A to F: reads, updates, inserts and scans of 1 KB records, keys chosen by Zipf",
		Variant:    "sound",
		QuickN:     []int{10_000},
		FullN:      []int{1_000_000},
		ValueBytes: 1000,
		Modes:      unsynced,
		Skewed:     true,
		Vary:       forGoroutines,
		Conditions: ycsbConditions,
		Columns:    ycsbColumns,
		Estimate:   ycsbEstimate,
		Run:        runYCSB,
	})
}

// ycsbBatch is how many records a batch of the load phase has.
const ycsbBatch = 1000

// forGoroutines makes a cell for one goroutine and one for two.
func forGoroutines(p Params, _ Scale) []Params {
	one, two := p, p
	one.Goroutines, two.Goroutines = 1, 2
	return []Params{one, two}
}

var ycsbColumns = []result.Column{
	{Key: "load", Title: "load", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "a", Title: "A 50% update", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "b", Title: "B 5% update", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "c", Title: "C read only", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "d", Title: "D latest", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "e", Title: "E scans", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "f", Title: "F read-modify-write", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "close", Title: "close", Group: "space", Unit: result.Nanos},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
}

func ycsbConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d records, loaded in batches of %d in an order unrelated to that of the keys; then A, B, C, F, D, E one after the other on the same store, %d operations each, of E %d, by %d goroutines",
			p.N, ycsbBatch, ycsbMixes[0].ops(p.N), ycsbMixes[len(ycsbMixes)-1].ops(p.N), p.Goroutines),
		"A 50 % reads, 50 % updates; B 95/5; C reads; D 95 % reads of the latest, 5 % inserts; E 95 % scans of 1 to 100 records (uniform), 5 % inserts; F 50 % reads, 50 % read-modify-writes",
		fmt.Sprintf("keys by Zipf with theta %v, scrambled: the popular ones lie anywhere; in D from the newest record back", ycsbTheta(p)),
		"ranks are drawn over the records there are; the YCSB client draws them over 10,000,000,000 items and hashes these into the records: there the most popular record has 3.8 % of the requests, here with theta 0.99 9.8 % at 10,000 records and 6.5 % at 1,000,000",
		"a record is one value: updates write all of it; ns/op is time divided by operations, whatever the number of goroutines: throughput is its inverse",
		"two goroutines never write one record at the same moment, so that it is known what a read may see; every value read is compared, every scan is checked for missing records",
		"operations are drawn before the clock starts; batches of the load are one commit each where the engine allows it, every update and insert a commit of its own" + syncCondition(p.Sync),
		"after close the store is opened again and every record read (not timed)",
	}
}

func ycsbTheta(p Params) float64 {
	if p.Theta > 0 {
		return p.Theta
	}
	return data.DefaultTheta
}

func ycsbEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	c := p.cost(e, syncDelay)
	if p.Goroutines > 1 && !e.Can(engine.CanShare) {
		return idle
	}
	ops, scanned := ycsbMixes[0].ops(p.N), ycsbMixes[len(ycsbMixes)-1].ops(p.N)
	writes := times(ops*115/100, c.put())
	reads := times(ops*4, c.get()) + times(p.N, c.get())
	var scans time.Duration
	if e.Can(engine.CanScan) {
		scans = times(scanned, c.scanned(longestScan/2))
	}
	return starting + 2*c.opening() + times(p.N, c.batched()) + writes + reads + scans
}

func runYCSB(rec *Recorder, d engine.Driver, dir string, p Params) error {
	if why, no := d.Info.Cannot[engine.CanShare]; no && p.Goroutines > 1 {
		rec.noneOf(why, ycsbColumns)
		return nil
	}
	y, err := newYCSB(rec, d, dir, p)
	if err != nil {
		return err
	}
	rec.Begin()
	if y.store, err = d.Open(dir, p.options()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if err := y.load(); err != nil {
		return err
	}
	for _, m := range ycsbMixes {
		if err := y.run(m); err != nil {
			return fmt.Errorf("workload %s: %w", m.name, err)
		}
	}
	return y.finish()
}

// ycsb is one run of all six workloads on one store.
type ycsb struct {
	rec     *Recorder
	p       Params
	d       engine.Driver
	dir     string
	store   engine.Store
	records *records
	lists   map[string][][]ycsbOp // by workload and goroutine
}

func newYCSB(rec *Recorder, d engine.Driver, dir string, p Params) (*ycsb, error) {
	y := &ycsb{rec: rec, p: p, d: d, dir: dir, lists: map[string][][]ycsbOp{}}
	inserts := 0
	for i, m := range ycsbMixes {
		lists, some, err := drawYCSB(m, p, uint64(20+10*i))
		if err != nil {
			return nil, err
		}
		y.lists[m.key] = lists
		inserts += some
	}
	y.records = newRecords(p, inserts)
	return y, nil
}

func (y *ycsb) load() error {
	ids := data.Sequence(y.records.loaded)
	_, err := y.rec.Phase("load", len(ids), func() error {
		for from := 0; from < len(ids); from += ycsbBatch {
			if err := y.records.load(y.rec, y.d.Info, y.store, ids[from:min(from+ycsbBatch, len(ids))]); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// run carries out one workload, each goroutine its own list.
func (y *ycsb) run(m ycsbMix) error {
	if why, no := y.d.Info.Cannot[engine.CanScan]; no && m.scan > 0 {
		y.rec.None(why, m.key)
		return nil
	}
	lists := y.lists[m.key]
	_, err := y.rec.Phase(m.key, m.ops(y.p.N), func() error {
		return together(len(lists), func(g int) error {
			look := y.records.lookup()
			for _, op := range lists[g] {
				if err := y.do(look, op); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return err
}

func (y *ycsb) do(look *recordLookup, op ycsbOp) error {
	if op.kind == ycsbReadLatest {
		return look.read(y.store, y.records.latestBut(op.id))
	}
	id := min(op.id, int32(y.records.loaded)-1)
	switch op.kind {
	case ycsbUpdate:
		return y.records.update(y.store, id)
	case ycsbModify:
		return look.modify(y.store, id)
	case ycsbInsert:
		return y.records.insert(y.store)
	case ycsbScan:
		return y.records.scan(y.store.(engine.Scanner), id, int(op.length))
	}
	return look.read(y.store, id)
}

func (y *ycsb) finish() error {
	closing, err := Measure(y.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	y.rec.Set("close", float64(closing.Time))
	if err := recordDisk(y.rec, y.dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	y.rec.End()
	if why, no := y.d.Info.Cannot[engine.CanScan]; no {
		y.rec.None("it lacks the inserts of E: "+why, "disk", "disk_allocated")
	}
	if why, no := y.d.Info.Cannot[engine.CanDisk]; no {
		y.rec.None(why, "close", "disk", "disk_allocated")
	}
	if why, no := y.d.Info.Cannot[engine.CanSync]; no && y.p.Sync {
		for _, key := range []string{"load", "a", "b", "d", "f"} {
			y.rec.None(why, key)
		}
		if y.d.Info.Can(engine.CanScan) {
			y.rec.None(why, "e")
		}
	}
	return y.survived()
}

// survived reads every record of the closed store and walks all of it. It is not timed.
func (y *ycsb) survived() error {
	if !y.d.Info.Can(engine.CanDisk) {
		return nil
	}
	store, err := y.d.Open(y.dir, y.p.options())
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	if err = y.records.readAll(store); err == nil {
		err = y.records.exact(store)
	}
	if err != nil {
		return fmt.Errorf("after close and open: %w", err)
	}
	return store.Close()
}
