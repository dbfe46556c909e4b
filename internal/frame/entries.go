package frame

import "github.com/cairndb/cairn/internal/base"

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
	parts        [][]byte // in order; those behind at are empty
	at           int      // the one being filled
	bytes, count int
}

// Add adds an entry whose key is prefix and key, one behind the other.
func (e *Entries) Add(kind base.Kind, prefix, key, value []byte) {
	need := MaxEntryHeaderBytes + len(prefix) + len(key) + len(value)
	part := e.room(need)
	before := len(*part)
	*part = AppendPrefixed(*part, kind, prefix, key, value)
	e.bytes += len(*part) - before
	e.count++
}

// room returns a part that has room for need bytes more.
func (e *Entries) room(need int) *[]byte {
	for ; e.at < len(e.parts); e.at++ {
		if p := &e.parts[e.at]; cap(*p)-len(*p) >= need {
			return p
		}
	}
	size := firstPart
	if e.at > 0 {
		size = min(2*cap(e.parts[e.at-1]), greatestPart)
	}
	e.parts = append(e.parts, make([]byte, 0, max(size, need)))
	return &e.parts[e.at]
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

// Parts returns the encoded entries. Some parts may be empty.
func (e *Entries) Parts() [][]byte { return e.parts }

// Len returns how many entries there are.
func (e *Entries) Len() int { return e.count }

// Bytes returns how long they are together.
func (e *Entries) Bytes() int { return e.bytes }

// Reset removes the entries and keeps the memory.
func (e *Entries) Reset() {
	for i := range e.parts {
		e.parts[i] = e.parts[i][:0]
	}
	e.at, e.bytes, e.count = 0, 0, 0
}
