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
		Name:       "w1",
		Title:      "W1 lifecycle: put, get, delete, put again, iterate; one commit each",
		Variant:    "sound",
		QuickN:     []int{10_000},
		FullN:      []int{100_000},
		ValueBytes: 4096,
		Conditions: lifecycleConditions,
		Columns:    lifecycleColumns,
		Estimate:   lifecycleEstimate,
		Run:        runLifecycle,
	})
}

var lifecycleColumns = []result.Column{
	{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "get", Title: "get rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "delete", Title: "delete rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "put2", Title: "put rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "keys", Title: "iterate keys", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "pairs", Title: "iterate pairs", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "put_total", Title: "puts", Group: "totals", Unit: result.Nanos, Ranked: true},
	{Key: "close", Title: "close", Group: "totals", Unit: result.Nanos},
	{Key: "put_close", Title: "puts+close", Group: "totals", Unit: result.Nanos, Ranked: true},
	{Key: "total", Title: "all+close", Group: "totals", Unit: result.Nanos, Ranked: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "put_allocs", Title: "put allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
	{Key: "get_allocs", Title: "get allocs/op", Group: "space", Unit: result.AllocsPerOp, Ranked: true},
}

func lifecycleConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d sequential puts, random gets, random deletes, random puts (new values); then all keys, then all keys with values", p.N),
		"every put and delete is a commit of its own" + syncCondition(p.Sync),
		"nothing is run before the first put: no warm-up; gets find the page cache as the puts left it",
		"after the deletes every key is checked to be gone (not timed)",
		"puts = both rounds of puts; sizes are taken after close",
	}
}

func syncCondition(sync bool) string {
	if sync {
		return ", deletes too, and asked to be durable when it returns (system calls are not counted in this version)"
	}
	return ", not synced"
}

// lifecycleEstimate: three writes and some five reads for each key. Bolt's
// share grows with the number of keys, hence the last term.
func lifecycleEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	perKey := 120*time.Microsecond + time.Duration(p.ValueBytes)*30
	if p.Sync && e.Can(engine.CanSync) {
		perKey += 3 * syncDelay * 3 / 2
	}
	if e.Floor {
		perKey = 10 * time.Microsecond
	}
	return 300*time.Millisecond + time.Duration(p.N)*perKey
}

// lifecycle is one run of W1 on one store.
type lifecycle struct {
	*expectation
	rec   *Recorder
	p     Params
	info  engine.Info
	store engine.Store
	puts  time.Duration
	all   time.Duration
}

func runLifecycle(rec *Recorder, d engine.Driver, dir string, p Params) error {
	l := &lifecycle{expectation: expect(p), rec: rec, p: p, info: d.Info}
	store, err := d.Open(dir, engine.Options{Sync: p.Sync})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	l.store = store
	if err := l.phases(); err != nil {
		return err
	}
	span, err := Measure(store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	l.totals(span.Time)
	return l.sizes(dir)
}

func (l *lifecycle) phases() error {
	steps := []func() error{
		func() error { return l.puts0("put", data.Order(0, 0, 0)) },
		l.gets,
		l.deletes,
		func() error { return l.noneLeft(l.store) },
		func() error { l.version = 1; return l.puts0("put2", data.Order(l.n, l.p.Seed, 3)) },
		l.walkKeys,
		l.walkPairs,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
