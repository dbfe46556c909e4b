package frame

import (
	"sync"

	"github.com/cairndb/cairn/internal/base"
)

// Parts of Entries: the first has room for a few entries, each next one is twice as
// large as the one before, up to the greatest.
const (
	firstPart    = 4 << 10
	greatestPart = 8 << 20
)

// Entries gathers encoded entries in parts. No entry straddles two, and none is moved
// when more come: memory that grows by copying is touched for the first time over and
// over, which costs more than the copying. The zero value is empty.
type Entries struct {
	mem          *parts // nil: nothing was added since Reset
	bytes, count int
}

// parts is the memory of Entries.
type parts struct {
	all [][]byte // in order; those behind at are empty
	at  int      // the one being filled
}

// freeParts recycles the memory of entries that were reset, whoever gathers the next.
var freeParts = sync.Pool{New: func() any { return new(parts) }}

// mostFree is how many bytes the parts may have room for that are recycled: those that
// gathered more keep them.
const mostFree = 1 << 20

// Add adds an entry whose key is prefix and key, one behind the other.
func (e *Entries) Add(kind base.Kind, prefix, key, value []byte) {
	if e.mem == nil {
		e.mem = freeParts.Get().(*parts)
	}
	need := MaxEntryHeaderBytes + len(prefix) + len(key) + len(value)
	part := e.mem.room(need)
	before := len(*part)
	*part = AppendPrefixed(*part, kind, prefix, key, value)
	e.bytes += len(*part) - before
	e.count++
}

// room returns a part that has room for need bytes more.
func (p *parts) room(need int) *[]byte {
	for ; p.at < len(p.all); p.at++ {
		if part := &p.all[p.at]; cap(*part)-len(*part) >= need {
			return part
		}
	}
	size := firstPart
	if p.at > 0 {
		size = min(2*cap(p.all[p.at-1]), greatestPart)
	}
	p.all = append(p.all, make([]byte, 0, max(size, need)))
	return &p.all[p.at]
}

// reset empties all parts and returns how many bytes they have room for.
func (p *parts) reset() (room int) {
	for i := range p.all {
		p.all[i] = p.all[i][:0]
		room += cap(p.all[i])
	}
	p.at = 0
	return room
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

// Parts returns the encoded entries, which are e's until Reset. Some parts may be empty.
func (e *Entries) Parts() [][]byte {
	if e.mem == nil {
		return nil
	}
	return e.mem.all
}

// Len returns how many entries there are.
func (e *Entries) Len() int { return e.count }

// Bytes returns how long they are together.
func (e *Entries) Bytes() int { return e.bytes }

// Reset removes the entries. Nobody may use the parts any more.
func (e *Entries) Reset() {
	if e.mem != nil && e.mem.reset() <= mostFree {
		freeParts.Put(e.mem)
		e.mem = nil
	}
	e.bytes, e.count = 0, 0
}
