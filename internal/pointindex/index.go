package pointindex

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/prefetch"
)

// Loc says where a row is: the block's number in its table and the row's number
// in the block.
type Loc uint64

// MakeLoc returns the loc of a row.
func MakeLoc(block uint32, row uint16) Loc { return Loc(block)<<16 | Loc(row) }

// Block returns the number of the block.
func (l Loc) Block() int { return int(l >> 16) }

// Row returns the number of the row within its block.
func (l Loc) Row() int { return int(l & 0xFFFF) }

const (
	slotBytes     = 8
	lineSlots     = 8
	lineBytes     = slotBytes * lineSlots
	lineLoad      = 6 // slots taken of lineSlots, on average
	locBits       = 48
	maxProbeLines = 128
)

// ErrCrowded means so many hashes are alike that an index would not be fast.
var ErrCrowded = fmt.Errorf("pointindex: more than %d entries around one hash", lineSlots*maxProbeLines)

// Index is an immutable set of (hash, loc). See the package's documentation.
type Index struct {
	mem    []byte // whole lines are used; the mapping may be longer
	lines  uint64
	n      int
	budget *arena.Budget
}

// touchedAtOnce bounds how long the process's memory is busy.
const touchedAtOnce = 2 << 20

// newIndex returns an empty index with room for n entries.
func newIndex(n int, budget *arena.Budget) (*Index, error) {
	lines := max(1, (n+lineLoad-1)/lineLoad)
	mem, err := arena.Map(lines * lineBytes)
	if err != nil {
		return nil, err
	}
	arena.AdviseHuge(mem)
	for part := range slices.Chunk(mem, touchedAtOnce) { // else each page costs two faults: it is read first
		arena.Touch(part)
	}
	budget.Add(arena.ClassIndex, int64(len(mem)))
	return &Index{mem: mem, lines: uint64(lines), budget: budget}, nil
}

// Free gives the memory back. Nobody may look anything up any more.
func (x *Index) Free() error {
	x.budget.Add(arena.ClassIndex, -int64(len(x.mem)))
	mem := x.mem
	x.mem = nil
	return arena.Unmap(mem)
}

// Len returns the number of entries.
func (x *Index) Len() int { return x.n }

// Bytes returns the memory of the index.
func (x *Index) Bytes() int64 { return int64(len(x.mem)) }

func (x *Index) home(hash uint64) uint64 {
	line, _ := bits.Mul64(hash, x.lines)
	return line
}

func fingerprint(hash uint64) uint64 {
	if fp := hash & 0xFFFF; fp != 0 {
		return fp
	}
	return 1
}

func (x *Index) slot(line uint64, i int) []byte {
	return x.mem[line*lineBytes+uint64(i)*slotBytes:]
}

// insert reports whether there was room near home.
func (x *Index) insert(hash uint64, loc Loc) bool {
	line := x.home(hash)
	for range min(x.lines, maxProbeLines) {
		for i := range lineSlots {
			if s := x.slot(line, i); binary.LittleEndian.Uint64(s) == 0 {
				binary.LittleEndian.PutUint64(s, fingerprint(hash)<<locBits|uint64(loc))
				x.n++
				return true
			}
		}
		line = x.after(line)
	}
	return false
}

func (x *Index) after(line uint64) uint64 {
	if line++; line == x.lines {
		return 0
	}
	return line
}

// prefetch brings the home line of hash on its way to the processor.
func (x *Index) prefetch(hash uint64) {
	prefetch.Lines(x.slot(x.home(hash), 0)[:slotBytes])
}

// Probe walks the candidates of one hash. Candidates are few: besides the right
// one, if there is one, about one in 8,000 lookups meets another.
type Probe struct {
	x    *Index
	fp   uint64
	line uint64
	slot int
	left int // lines still to look at, this one included
}

// Find starts a walk over the locs that may have been added with hash.
func (x *Index) Find(hash uint64) Probe {
	return Probe{x: x, fp: fingerprint(hash), line: x.home(hash), left: int(min(x.lines, maxProbeLines))}
}

// Next returns the next candidate; ok is false if there is none left.
func (p *Probe) Next() (loc Loc, ok bool) {
	for p.left > 0 {
		line := p.x.mem[p.line*lineBytes:][:lineBytes]
		for i := p.slot; i < lineSlots; i++ {
			s := binary.LittleEndian.Uint64(line[i*slotBytes:])
			if s>>locBits == p.fp {
				p.slot = i + 1
				return Loc(s & (1<<locBits - 1)), true
			}
			if s == 0 {
				p.left = 0
				return 0, false
			}
		}
		p.line, p.slot, p.left = p.x.after(p.line), 0, p.left-1
	}
	return 0, false
}
