package engine

import (
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/tree"
)

// GetTo appends the newest committed value of key to dst[:0].
func (e *Engine) GetTo(bucket, key, dst []byte) ([]byte, error) {
	r, err := e.enter()
	if err != nil {
		return dst[:0], err
	}
	defer e.leave(r)
	f, err := e.latest(r.internal(bucket, key))
	if err != nil {
		return dst[:0], err
	}
	if !f.Live() {
		return dst[:0], base.ErrNotFound
	}
	if dst == nil {
		dst = make([]byte, 0, len(f.Value))
	}
	return append(dst[:0], f.Value...), nil
}

// Has reports whether key has a value.
func (e *Engine) Has(bucket, key []byte) (bool, error) {
	r, err := e.enter()
	if err != nil {
		return false, err
	}
	defer e.leave(r)
	f, err := e.latest(r.internal(bucket, key))
	return f.Live(), err
}

// latest finds the newest committed version of key. The caller is inside the
// epoch. The state is loaded before the visible sequence (E7): compaction drops
// only what a newer visible version hides, so a state holds every version that a
// sequence loaded after it asks for.
func (e *Engine) latest(key []byte) (tree.Found, error) {
	rs := e.state.Load()
	if rs == nil { // Close came between enter and here
		return tree.Found{}, base.ErrClosed
	}
	return rs.Lookup(key, base.Hash(key), base.Visibility{Snapshot: e.visible.Load()})
}
