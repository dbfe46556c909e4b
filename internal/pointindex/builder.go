package pointindex

import (
	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/recycle"
)

type entry struct {
	hash uint64
	loc  Loc
}

const (
	chunkEntries = 1024
	chunkBytes   = chunkEntries * 16
)

type chunk [chunkEntries]entry

// chunks recycles the memory of builders: touching fresh memory costs more than
// what is done in it.
var chunks recycle.Pool[chunk]

// Builder gathers entries until their number is known. It takes 16 bytes an
// entry, counted to arena.ClassIndex. For one goroutine.
type Builder struct {
	budget *arena.Budget
	full   []*chunk // all but the last are full
	n      int
}

// NewBuilder returns an empty builder.
func NewBuilder(budget *arena.Budget) *Builder { return &Builder{budget: budget} }

// Add adds an entry. A key with several versions is added once, with the loc of
// its newest row: the others stand behind it.
func (b *Builder) Add(hash uint64, loc Loc) {
	at := b.n % chunkEntries
	if at == 0 {
		b.full = append(b.full, chunks.Get())
		b.budget.Add(arena.ClassIndex, chunkBytes)
	}
	b.full[len(b.full)-1][at] = entry{hash, loc & (1<<locBits - 1)}
	b.n++
}

// Len returns the number of entries added.
func (b *Builder) Len() int { return b.n }

// Build makes the index and empties the builder, whatever the outcome. The
// error is ErrCrowded or one of arena.Map.
func (b *Builder) Build() (*Index, error) {
	defer b.Discard()
	x, err := newIndex(b.n, b.budget)
	if err != nil {
		return nil, err
	}
	for i := range b.n {
		if i+linesAhead < b.n {
			x.prefetch(b.entry(i + linesAhead).hash)
		}
		if e := b.entry(i); !x.insert(e.hash, e.loc) {
			x.Free()
			return nil, ErrCrowded
		}
	}
	return x, nil
}

// linesAhead: the lines of so many entries are on their way to the processor at a time.
const linesAhead = 8

func (b *Builder) entry(i int) entry { return b.full[i/chunkEntries][i%chunkEntries] }

// Discard empties the builder and gives its memory back.
func (b *Builder) Discard() {
	for _, c := range b.full {
		chunks.Put(c)
	}
	b.budget.Add(arena.ClassIndex, -int64(len(b.full))*chunkBytes)
	b.full, b.n = nil, 0
}
