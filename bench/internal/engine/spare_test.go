package engine

import (
	"errors"
	"testing"
)

func TestSpareBatch(t *testing.T) {
	var s spare[int]
	made := 0
	fresh := func() int { made++; return made }
	one, two := s.take(fresh), s.take(fresh)
	if one != 1 || two != 2 {
		t.Fatalf("two at once: %d and %d", one, two)
	}
	if s.give(one, spareBytes+1) {
		t.Error("a batch that is too large is kept")
	}
	if !s.give(two, spareBytes) || s.give(one, 0) {
		t.Error("one batch is kept, and one only")
	}
	if got := s.take(fresh); got != two || made != 2 {
		t.Errorf("batch %d, %d made", got, made)
	}
	freed := 0
	s.end(func(int) { freed++ })
	if s.give(two, 0); freed != 0 {
		t.Error("a batch in use was freed")
	}
	s.end(func(int) { freed++ })
	s.end(func(int) { freed++ })
	if freed != 1 {
		t.Errorf("freed %d times", freed)
	}
}

// What one batch wrote is not in the next, small or large.
func TestABatchBeginsEmpty(t *testing.T) {
	each(t, CanBatch, func(t *testing.T, d Driver) {
		if !d.Info.Can(CanGet) {
			return
		}
		s, _ := fill(t, d, Options{}, 0)
		batch := func(from, to, size int) {
			_, err := s.(Batcher).PutBatch(func(yield func(k, v []byte) bool) {
				for i := from; i < to && yield(testKey(i), make([]byte, max(1, size))); i++ {
				}
			})
			check(t, err)
		}
		absent := func(i int) {
			if err := s.Get(testKey(i), func([]byte) error { return nil }); !errors.Is(err, ErrNotFound) {
				t.Errorf("key %d was deleted, and a later batch brought it back: %v", i, err)
			}
		}
		batch(0, 3, 10)
		check(t, s.Delete(testKey(1)))
		batch(3, 6, spareBytes/2)
		check(t, s.Delete(testKey(4)))
		batch(6, 9, 10)
		absent(1)
		absent(4)
		for _, i := range []int{0, 2, 3, 5, 6, 8} {
			if err := s.Get(testKey(i), func([]byte) error { return nil }); err != nil {
				t.Errorf("key %d: %v", i, err)
			}
		}
	})
}
