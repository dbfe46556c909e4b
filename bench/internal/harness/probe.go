package harness

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/syncs"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// How many commits of each kind are counted: few, for each sync is held back a
// little, and enough that an engine which syncs now and then is not taken for one
// that always does.
const (
	probePuts       = 30
	probeDeletes    = 10
	probeBatches    = 8
	probeBatch      = 10     // pairs of the first batches
	probeWhole      = 10_000 // of the last one, of middling values: a whole set
	probeGoroutines = 4
	probeShared     = 10 // puts of each goroutine

	probeCommits = probePuts + probeDeletes + probeBatches + probeGoroutines*probeShared
)

// probeValues are the sizes of values, one after the other: an engine may take another way with long ones than with
// short. They are about those of the workloads.
var probeValues = []int{500, 50, 1480, 4096, 16 << 10, 1 << 20, 100}

// probe makes a few commits of every kind and tells the tracer of each.
type probe struct {
	store  engine.Store
	keys   data.Keys
	source *data.Source
	nextID atomic.Uint64
}

func runProbe(d engine.Driver, o order) outcome {
	p := &probe{keys: data.NewKeys(1000 + probeWhole), source: data.NewSource(1)}
	store, err := d.Open(o.Dir, engine.Options{Sync: o.Params.Sync})
	if err != nil {
		return outcome{Status: result.Failed, Reason: fmt.Sprintf("open: %v", err)}
	}
	p.store = store
	err = p.commits(d.Info)
	if err = errors.Join(err, store.Close()); err == nil && d.Info.Can(engine.CanShare) {
		err = p.shared(d, o)
	}
	if err != nil {
		return outcome{Status: result.Failed, Reason: err.Error()}
	}
	return outcome{Status: result.OK, Metrics: map[string]float64{}}
}

func (p *probe) commits(info engine.Info) error {
	for i := range probePuts {
		if err := p.commit(workload.PutCommits, func() error { return p.put(i) }); err != nil {
			return err
		}
	}
	if info.Can(engine.CanGet) { // what cannot look a key up cannot delete it either
		for i := range probeDeletes {
			if err := p.commit(workload.DeleteCommits, func() error { return p.store.Delete(p.keys.At(i)) }); err != nil {
				return err
			}
		}
	}
	if b, ok := p.store.(engine.Batcher); ok {
		for i := range probeBatches {
			if err := p.commit(workload.BatchCommits, func() error { return p.batch(b, i) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// value is that of the i-th commit of a kind.
func (p *probe) value(i int) []byte {
	return p.source.Value(uint64(i), 1, probeValues[i%len(probeValues)])
}

func (p *probe) put(i int) error { return p.store.Put(p.keys.At(i), p.value(i)) }

func (p *probe) batch(b engine.Batcher, number int) error {
	first, pairs, value := 100+number*probeBatch, probeBatch, p.value(number)
	if number == probeBatches-1 {
		first, pairs, value = 1000, probeWhole, p.source.Value(1, 1, 1480)
	} else if len(value) > 16<<10 {
		value = value[:16<<10] // what some engines take at once is bounded
	}
	_, err := b.PutBatch(func(yield func(key, value []byte) bool) {
		for i := range pairs {
			if !yield(p.keys.At(first+i), value) {
				return
			}
		}
	})
	return err
}

// shared opens the store again, told of the goroutines: an engine may commit in another way
// for several.
func (p *probe) shared(d engine.Driver, o order) (err error) {
	if p.store, err = d.Open(o.Dir, engine.Options{Sync: o.Params.Sync, Writers: probeGoroutines}); err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	var all sync.WaitGroup
	errs := make([]error, probeGoroutines)
	for g := range probeGoroutines {
		all.Go(func() {
			for i := range probeShared {
				if errs[g] == nil {
					errs[g] = p.commit(workload.SharedCommits, func() error { return p.put(500 + g*probeShared + i) })
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errors.Join(errs...), p.store.Close())
}

func (p *probe) commit(kind workload.CommitKind, fn func() error) error {
	id, number := p.nextID.Add(1), syncs.Kind(slices.Index(workload.CommitKinds, kind))
	syncs.Begin(number, id)
	if err := fn(); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	syncs.End(number, id)
	return nil
}
