package iterator

import "github.com/cairndb/cairn/internal/block"

// Carrier may be implemented by a base.Iterator of which a merge can take whole blocks as they are stored, in place of
// their rows.
type Carrier interface {
	// Whole reports whether the current row begins a block of which all rows are puts without a sequence, each of another
	// key, less than limit (nil: no limit), so that there is nothing older; raw is the size of its keys and values, and c how
	// it is compressed, most likely.
	Whole(limit []byte) (raw int, c block.Codec, ok bool)
	// Carry sets dst to that block. It is valid until the iterator moves.
	Carry(dst *block.Stored) error
	// SkipBlock moves to the first row behind the block that the iterator stands in.
	SkipBlock() bool
}

// Whole implements Carrier: there is such a block if no other source has a key in it.
func (m *Merging) Whole(limit []byte) (raw int, c block.Codec, ok bool) {
	source := m.carrier()
	if source == nil {
		return 0, 0, false
	}
	if m.one == nil {
		if m.runner < 0 || m.backward { // who comes next is not known
			return 0, 0, false
		}
		if other := &m.heads[m.runner]; other.live && (limit == nil || less(other.key, limit)) {
			limit = other.key
		}
	}
	return source.Whole(limit)
}

// Carry implements Carrier.
func (m *Merging) Carry(dst *block.Stored) error { return m.carrier().Carry(dst) }

// SkipBlock implements Carrier.
func (m *Merging) SkipBlock() bool {
	if m.one != nil {
		return m.carrier().SkipBlock()
	}
	return m.advance(m.carrier().SkipBlock())
}

// carrier returns the current source, nil if no blocks can be taken of it. It is asked before each key of a merge.
func (m *Merging) carrier() Carrier {
	if !m.Valid() {
		return nil
	}
	if len(m.carriers) == 0 { // scans have no use for them
		for _, it := range m.src {
			c, _ := it.(Carrier)
			m.carriers = append(m.carriers, c)
		}
	}
	return m.carriers[m.current()]
}
