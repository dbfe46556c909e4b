package engine

import "sync"

// spareBytes is the largest batch that is kept, by the bytes of its keys and values:
// what Pebble keeps by itself.
const spareBytes = 1 << 20

// spare keeps one emptied batch to be filled again, as the documentation of engines
// whose batches can be emptied advises. All of them do it by this rule.
type spare[B any] struct {
	mu    sync.Mutex
	batch B
	there bool
}

// take returns the batch that is kept, or a fresh one.
func (s *spare[B]) take(fresh func() B) B {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.there {
		return fresh()
	}
	s.there = false
	return s.batch
}

// give keeps an empty batch that had so many bytes in it, unless there is one already
// or it grew too large; then it is the caller's.
func (s *spare[B]) give(b B, bytes int) (kept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there || bytes > spareBytes {
		return false
	}
	s.batch, s.there = b, true
	return true
}

// end frees the batch that is kept.
func (s *spare[B]) end(free func(B)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.there {
		free(s.batch)
		s.there = false
	}
}

// addAll calls put with every pair and counts their bytes.
func addAll(pairs Pairs, put func(key, value []byte)) (bytes int) {
	for key, value := range pairs {
		put(key, value)
		bytes += len(key) + len(value)
	}
	return bytes
}
