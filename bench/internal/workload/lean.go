package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "lean",
		Title:      "Lean: very many pairs of 8 B keys and 8 B values, with little memory",
		Variant:    "sound",
		FullOnly:   true,
		QuickN:     []int{10_000_000},
		ValueBytes: leanBytes,
		Conditions: leanConditions,
		Columns:    leanColumns,
		Estimate:   leanEstimate,
		Run:        runLean,
		Commits:    []CommitKind{},
		Unfit:      leanUnfit,
		Vary:       varyLean,
	})
}

const (
	leanBytes = 8    // of a key and of a value
	leanPuts  = 1000 // timed at the end: some engines wait for the disk with each

	// leanMemory is what an engine is allowed for leanSet pairs. Fewer have less, but leanLeast:
	// below that it is the Go runtime that is measured, collecting garbage all the time.
	leanMemory = 80 << 20
	leanSet    = 100_000_000
	leanLeast  = 32 << 20
)

// varyLean: it is loaded without syncs in either mode, so one cell suffices.
func varyLean(p Params, _ Scale) []Params {
	if p.Sync {
		return nil
	}
	p.KeyBytes = leanBytes
	p.Memory = max(leanLeast, int64(float64(p.N)/leanSet*leanMemory))
	return []Params{p}
}

func leanUnfit(s Scale) string {
	if s.Data != nil || s.ValueBytes > 0 || s.KeyBytes > 0 {
		return "its keys and values of 8 B are what it is about"
	}
	return ""
}

var leanColumns = []result.Column{
	{Key: "load", Title: "load", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "reopen", Title: "reopen", Group: "time", Unit: result.Nanos, Ranked: true},
	{Key: "get", Title: "get uniform", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "keys", Title: "scan keys", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "put", Title: "put rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "serving", Title: "RSS after the gets", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
}

func leanConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d pairs are loaded in the order of their keys in batches of %d, not synced, closed, opened again; then %d gets of uniform keys, a scan of all keys, and %d puts of uniform keys that are there, a commit each, not synced", p.N, loadBatch, memoryReads(p.N), leanPuts),
		allowedCondition(fmt.Sprintf("%.1f MiB", float64(p.Memory)/(1<<20))),
		heldCondition,
		"RSS counts pages of mapped files too, which the kernel can take back; every value that is read is compared; the keys of the scan are compared where the engine has an order, and else only counted; keys and values are computed, no list of them is in memory",
	}
}

func leanEstimate(p Params, e engine.Info, _ time.Duration) time.Duration {
	perKey := 3 * time.Microsecond
	if !e.Can(engine.CanBatch) {
		perKey = 6 * time.Microsecond
	}
	return time.Second + time.Duration(p.N)*perKey + time.Duration(memoryReads(p.N)+leanPuts)*100*time.Microsecond
}

// lean is one run of it.
type lean struct {
	rec   *Recorder
	d     engine.Driver
	p     Params
	step  uint64 // from key to key
	made  []byte // pairs, which some engines do not copy before the commit
	store engine.Store
}

// pair makes pair i. It is valid until the pair is made that is loadBatch further on.
func (l *lean) pair(i int) (key, value []byte) {
	b := l.made[i%loadBatch*2*leanBytes:]
	key, value = b[:leanBytes:leanBytes], b[leanBytes:2*leanBytes:2*leanBytes]
	binary.BigEndian.PutUint64(key, uint64(i)*l.step)
	binary.LittleEndian.PutUint64(value, (uint64(i)+l.p.Seed)*0x9e3779b97f4a7c15)
	return key, value
}

func runLean(rec *Recorder, d engine.Driver, dir string, p Params) (err error) {
	if !bound(rec, d, p, leanColumns) {
		return nil
	}
	l := &lean{rec: rec, d: d, p: p, step: math.MaxUint64 / uint64(p.N), made: make([]byte, loadBatch*2*leanBytes)}
	opts := engine.Options{Memory: p.Memory, Keys: p.N}
	rec.Begin()
	if l.store, err = d.Open(dir, opts); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	if _, err := rec.Phase("load", p.N, l.load); err != nil {
		return err
	}
	if err := l.store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := recordDisk(rec, dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	opening, err := Measure(func() (err error) { l.store, err = d.Open(dir, opts); return err })
	if err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	rec.Set("reopen", float64(opening.Time))
	for _, step := range []func() error{l.gets, l.scan, l.puts} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := l.store.Close(); err != nil {
		return fmt.Errorf("last close: %w", err)
	}
	rec.End()
	return nil
}

func (l *lean) load() error {
	for from := 0; from < l.p.N; from += loadBatch {
		err := putPairs(l.rec, l.d.Info, l.store, func(yield func(key, value []byte) bool) {
			for i := from; i < min(from+loadBatch, l.p.N); i++ {
				if !yield(l.pair(i)) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lean) gets() error {
	order := uniform(l.p.N, memoryReads(l.p.N), l.p.Seed)
	var want []byte
	look := newLookup(func(id uint64, got []byte) error {
		if !bytes.Equal(got, want) {
			return wrong("key %d: value %x, want %x", id, got, want)
		}
		return nil
	})
	_, err := l.rec.Phase("get", len(order), func() error {
		for _, i := range order {
			var key []byte
			key, want = l.pair(int(i))
			if err := look.get(l.store, uint64(i), key); err != nil {
				return err
			}
		}
		return nil
	})
	if now := readUsage().now; now > 0 {
		l.rec.Set("serving", float64(now))
	} else {
		l.rec.None("the system does not say what is resident", "serving")
	}
	return err
}

// scan walks all keys. Of an engine without order they are counted.
func (l *lean) scan() error {
	walker, ok := l.store.(engine.KeyWalker)
	if !ok {
		l.rec.None(l.d.Info.Cannot[engine.CanKeys], "keys")
		return nil
	}
	_, err := l.rec.Phase("keys", l.p.N, func() error {
		n, ordered := 0, l.d.Info.Can(engine.CanOrder)
		err := walker.Keys(func(key []byte) error {
			if want, _ := l.pair(n); ordered && !bytes.Equal(key, want) {
				return wrong("key %d of the scan: %x, want %x", n, key, want)
			}
			n++
			return nil
		})
		if err == nil && n != l.p.N {
			err = wrong("the scan has %d keys, want %d", n, l.p.N)
		}
		return err
	})
	return err
}

func (l *lean) puts() error {
	rng := rand.New(rand.NewPCG(l.p.Seed, 20))
	_, err := l.rec.Phase("put", leanPuts, func() error {
		for range leanPuts {
			if err := l.store.Put(l.pair(rng.IntN(l.p.N))); err != nil {
				return fmt.Errorf("put: %w", err)
			}
		}
		return nil
	})
	return err
}
