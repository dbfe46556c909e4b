package frame

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
)

// Parts of Entries: the first has room for a few small entries, since many batches hold no more, each next one is twice as
// large as the one before, up to the greatest on the Go heap. Those behind are huge pages outside
// of it, as long as few of them wait for the garbage collector, which does not know how much
// they take.
const (
	firstPart    = 512
	greatestPart = 1 << 20
	mappedPart   = arena.HugeBytes
	mostMapped   = 64 << 20 // bytes, of all Entries
)

// Entries gathers encoded entries in parts. No entry straddles two, and none is moved
// when more come: memory that grows by copying is touched for the first time over and
// over, which costs more than the copying. The zero value is empty. A copy of Entries to which something was added
// is the same entries, until Reset: then it is empty, too.
type Entries struct {
	mem *parts // nil: nothing was added since Reset
	use uint64 // that which mem is in: else it is others' by now
}

// parts is the memory of Entries.
type parts struct {
	all          [][]byte // in order; those behind at are empty
	at           int      // the one being filled
	mapped       []*block // of which some of all are made
	bytes, count int      // of the entries
	use          atomic.Uint64
	lent         atomic.Int32 // to how many that write the entries
}

// block is a part outside the Go heap, empty. It goes when two collections have found it unused.
type block struct{ part []byte }

// blocks are those that nobody uses, for whoever gathers much next.
var blocks sync.Pool

// mapped counts the bytes of all blocks.
var mapped atomic.Int64

// takeBlock returns a block, nil if there is none.
func takeBlock() *block {
	if b, ok := blocks.Get().(*block); ok {
		return b
	}
	if mapped.Add(mappedPart) > mostMapped {
		mapped.Add(-mappedPart)
		return nil
	}
	mem, err := arena.Borrow(mappedPart)
	if err != nil {
		mapped.Add(-mappedPart)
		return nil
	}
	arena.AdviseHuge(mem)
	b := &block{mem[:0]}
	runtime.AddCleanup(b, func(mem []byte) {
		arena.Return(mem)
		mapped.Add(-mappedPart)
	}, mem)
	return b
}

// mapPart returns a part outside the Go heap, nil if there is none.
func (p *parts) mapPart() []byte {
	b := takeBlock()
	if b == nil {
		return nil
	}
	p.mapped = append(p.mapped, b)
	return b.part
}

// unmap gives the parts that are outside the Go heap to others.
func (p *parts) unmap() {
	if len(p.mapped) == 0 {
		return
	}
	p.all = slices.DeleteFunc(p.all, func(part []byte) bool {
		return slices.ContainsFunc(p.mapped, func(b *block) bool { return &b.part[:1][0] == &part[:1][0] })
	})
	for _, b := range p.mapped {
		blocks.Put(b)
	}
	clear(p.mapped)
	p.mapped = p.mapped[:0]
}

// mostFree is how many bytes the parts that are free may have room for together.
const mostFree = 1 << 20

// freeParts are what entries that were reset have left to whoever gathers the next. Not a
// sync.Pool: what that has kept for one processor it does not find for another.
var freeParts struct {
	sync.Mutex
	all  []*parts // empty
	room int      // bytes
}

// takeParts returns empty parts, with the memory of those that were freed last.
func takeParts() *parts {
	f := &freeParts
	f.Lock()
	defer f.Unlock()
	n := len(f.all)
	if n == 0 {
		return new(parts)
	}
	p := f.all[n-1]
	f.all[n-1] = nil
	f.all = f.all[:n-1]
	f.room -= p.room()
	return p
}

// free gives p, which is empty, to others, unless too much is free already.
func (p *parts) free() bool {
	room := p.room()
	f := &freeParts
	f.Lock()
	defer f.Unlock()
	if f.room+room > mostFree {
		return false
	}
	f.all = append(f.all, p)
	f.room += room
	return true
}

// Add adds an entry whose key is prefix and key, one behind the other, and reports whether it did: not while the entries are lent.
func (e *Entries) Add(kind base.Kind, prefix, key, value []byte) bool {
	p := e.held()
	if p == nil {
		p = takeParts()
		e.mem, e.use = p, p.use.Load()
	} else if p.lent.Load() > 0 {
		return false
	}
	need := MaxEntryHeaderBytes + len(prefix) + len(key) + len(value)
	part := p.fitting(need)
	before := len(*part)
	*part = AppendPrefixed(*part, kind, prefix, key, value)
	p.bytes += len(*part) - before
	p.count++
	return true
}

// held returns the parts, nil if there are none, or a copy of e was reset.
func (e *Entries) held() *parts {
	if e.mem == nil || e.mem.use.Load() != e.use {
		return nil
	}
	return e.mem
}

// fitting returns a part that has room for need bytes more.
func (p *parts) fitting(need int) *[]byte {
	for ; p.at < len(p.all); p.at++ {
		if part := &p.all[p.at]; cap(*part)-len(*part) >= need {
			return part
		}
	}
	size := firstPart
	if p.at > 0 {
		size = min(2*cap(p.all[p.at-1]), greatestPart)
	}
	if size == greatestPart && need <= mappedPart {
		if part := p.mapPart(); part != nil {
			p.all = append(p.all, part)
			return &p.all[p.at]
		}
	}
	p.all = append(p.all, make([]byte, 0, max(size, need)))
	return &p.all[p.at]
}

// room returns how many bytes all parts have room for when they are empty.
func (p *parts) room() (n int) {
	for _, part := range p.all {
		n += cap(part)
	}
	return n
}

func (p *parts) reset() {
	p.unmap()
	for i := range p.all {
		p.all[i] = p.all[i][:0]
	}
	p.at, p.bytes, p.count = 0, 0, 0
}

// OnlyDeletes reports whether there are entries in parts, and no put among them. A put,
// and nothing else, may begin in one part and end in the next.
func OnlyDeletes(parts [][]byte) bool {
	any := false
	for _, part := range parts {
		for len(part) > 0 {
			ent, n := DecodeEntry(part)
			if n == 0 || ent.Kind == base.KindPut {
				return false
			}
			part, any = part[n:], true
		}
	}
	return any
}

// Length returns how long parts are together.
func Length(parts [][]byte) (n int) {
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// Parts returns the encoded entries, which are e's until Reset. Some parts may be empty. They do not
// keep e from being collected, with which they end: see runtime.KeepAlive.
func (e *Entries) Parts() [][]byte {
	if p := e.held(); p != nil {
		return p.all
	}
	return nil
}

// Len returns how many entries there are.
func (e *Entries) Len() int {
	if p := e.held(); p != nil {
		return p.count
	}
	return 0
}

// Bytes returns how long they are together.
func (e *Entries) Bytes() int {
	if p := e.held(); p != nil {
		return p.bytes
	}
	return 0
}

// Reset removes the entries. Nobody may use the parts any more: others gather in them
// next, or e again where more than mostFree bytes of them are on the Go heap.
func (e *Entries) Reset() {
	p := e.held()
	e.mem = nil
	if p == nil {
		return
	}
	if p.lent.Load() > 0 { // see Return
		p.use.Add(1)
		return
	}
	p.reset()
	e.use = p.use.Add(1)
	if !p.free() {
		e.mem = p
	}
}

// Lent are entries that somebody writes. They stay as they are until Return, whatever is done with those that they are of.
type Lent struct {
	p   *parts
	use uint64
}

// Lend lends the entries to somebody who writes them.
func (e *Entries) Lend() Lent {
	p := e.held()
	if p != nil {
		p.lent.Add(1)
	}
	return Lent{p, e.use}
}

// Parts returns the encoded entries. Some parts may be empty.
func (l Lent) Parts() [][]byte {
	if l.p == nil {
		return nil
	}
	return l.p.all
}

// Size returns how long the entries are together, and how many.
func (l Lent) Size() (bytes, count int) {
	if l.p == nil {
		return 0, 0
	}
	return l.p.bytes, l.p.count
}

// Return ends it: nobody uses the parts any more. What was reset meanwhile serves others now.
func (l Lent) Return() {
	if l.p != nil && l.p.lent.Add(-1) == 0 && l.p.use.Load() != l.use {
		l.p.reset()
		l.p.free()
	}
}
