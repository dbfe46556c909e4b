package workload

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// publishedKey is the key of W2's article.
func publishedKey(i int) []byte { return []byte("key_" + fmt.Sprintf("%07d", i)) }

// publishedValue is one text for all keys, much like the article's.
func publishedValue(size int) []byte { return bytes.Repeat([]byte("val"), size/3+1)[:size] }

// hotKey is the one the article always asks for.
const hotKey = 99

// published does what the article's benchmark does, on one store.
func (s *single) published() error {
	s.rec.Begin()
	store, dir, err := s.open()
	if err != nil {
		return err
	}
	for _, size := range singleSizes {
		value := publishedValue(size)
		err := s.benchmark(fmt.Sprintf("put%d", size), func(b *testing.B) error { return putFormatted(store, b.N, value) })
		if err != nil {
			return err
		}
	}
	gets := max(hotKey+1, min(singleGets, s.p.N))
	value := publishedValue(singleSizes[0])
	if err := s.fillPublished(store, gets, value); err != nil {
		return err
	}
	if err := s.benchmark("get", func(b *testing.B) error { return getHot(store, b.N, value) }); err != nil {
		return err
	}
	if err := store.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return s.publishedSurvived(dir, gets, value)
}

func putFormatted(store engine.Store, n int, value []byte) error {
	for i := range n {
		if err := store.Put(publishedKey(i), value); err != nil {
			return fmt.Errorf("put of key %d: %w", i, err)
		}
	}
	return nil
}

// fillPublished puts the pairs to get in a batch: nobody times it.
func (s *single) fillPublished(store engine.Store, n int, value []byte) error {
	b, ok := store.(engine.Batcher)
	if !ok {
		return putFormatted(store, n, value)
	}
	_, err := b.PutBatch(func(yield func(key, value []byte) bool) {
		for i := range n {
			if !yield(publishedKey(i), value) {
				return
			}
		}
	})
	return err
}

// same compares with the one value of all keys.
func same(want []byte) func(id uint64, got []byte) error {
	return func(id uint64, got []byte) error {
		if !bytes.Equal(got, want) {
			return wrong("key %d: a wrong value of %d bytes, want %d", id, len(got), len(want))
		}
		return nil
	}
}

func getHot(r engine.Reader, n int, want []byte) error {
	l := newLookup(same(want))
	for range n {
		if err := l.get(r, hotKey, []byte("key_"+fmt.Sprintf("%07d", hotKey))); err != nil {
			return err
		}
	}
	return nil
}

// publishedSurvived opens the store again and reads every key. It is not timed.
func (s *single) publishedSurvived(dir string, n int, want []byte) error {
	if !s.d.Info.Can(engine.CanDisk) {
		return nil
	}
	store, err := s.d.Open(dir, s.p.options())
	if err != nil {
		return fmt.Errorf("open after close: %w", err)
	}
	l := newLookup(same(want))
	for i := range n {
		if err := l.get(store, uint64(i), publishedKey(i)); err != nil {
			return fmt.Errorf("after close and open: %w", err)
		}
	}
	return store.Close()
}
