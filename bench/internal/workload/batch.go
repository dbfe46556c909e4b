package workload

import (
	"fmt"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// set is pairs to write: which keys in which order.
type set struct {
	*expectation
	order []int32
}

func (s set) pairs(yield func(key, value []byte) bool) {
	for _, i := range s.order {
		if !yield(s.keys.At(int(i)), s.value(uint64(i))) {
			return
		}
	}
}

// put writes the set in one batch, or pair by pair if there are no batches.
func (s set) put(rec *Recorder, info engine.Info, store engine.Store) error {
	return putPairs(rec, info, store, s.pairs)
}

func putPairs(rec *Recorder, info engine.Info, store engine.Store, pairs engine.Pairs) error {
	b, ok := store.(engine.Batcher)
	if !ok {
		rec.Note(info.Cannot[engine.CanBatch] + "; so batches are put pair by pair, and not atomic")
		return putOneByOne(store, pairs)
	}
	note, err := b.PutBatch(pairs)
	rec.Note(note)
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	return nil
}

func putOneByOne(store engine.Store, pairs engine.Pairs) error {
	for key, value := range pairs {
		if err := store.Put(key, value); err != nil {
			return fmt.Errorf("put of key %q: %w", key, err)
		}
	}
	return nil
}

// putBatches writes the set in batches of size pairs.
func (s set) putBatches(rec *Recorder, info engine.Info, store engine.Store, size int) error {
	for from := 0; from < len(s.order); from += size {
		part := set{s.expectation, s.order[from:min(from+size, len(s.order))]}
		if err := part.put(rec, info, store); err != nil {
			return err
		}
	}
	return nil
}

// view calls fn with one read transaction if the engine has them, else with the
// store itself.
func view(rec *Recorder, info engine.Info, store engine.Store, fn func(engine.Reader) error) error {
	viewer, ok := store.(engine.Viewer)
	if !ok {
		rec.Note(info.Cannot[engine.CanView] + "; so every get is one by itself")
		return fn(store)
	}
	return viewer.View(fn)
}
