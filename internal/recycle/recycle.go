// Package recycle keeps what was used for whoever needs the same next: memory that was
// touched already costs less than fresh one.
//
// # Concurrency
//
// All methods may be called at once.
//
// # Lifetimes
//
// What a Pool was given back last stays, whoever asks next and whenever; so it should not be
// large. What it was given back before may go with a garbage collection, as with sync.Pool.
// A Buffer, which may be large, goes when nobody has wanted one between two calls of Age.
package recycle

import (
	"sync"
	"sync/atomic"
)

// Pool hands out what it was given. sync.Pool alone does not find for one processor what
// it keeps for another, and forgets all when it is not used for two collections: a store
// that flushes now and then would make its buffers anew each time. The zero value is an
// empty pool.
type Pool[T any] struct {
	last atomic.Pointer[T]
	rest sync.Pool // *T
}

// Get returns what was given back, or a new zero T. It is the caller's.
func (p *Pool[T]) Get() *T {
	if x := p.last.Swap(nil); x != nil {
		return x
	}
	if x, ok := p.rest.Get().(*T); ok {
		return x
	}
	return new(T)
}

// Put gives x back, which nobody may use any more.
func (p *Pool[T]) Put(x *T) {
	if before := p.last.Swap(x); before != nil {
		p.rest.Put(before)
	}
}
