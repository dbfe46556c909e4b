package iterator

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// Merging walks the entries of all its sources in one order. It implements
// base.Iterator. Entries with the same key and sequence, which a store never
// has, come in the order of the sources. An error of any source ends it.
//
// The zero value is an empty one, ready for Init.
type Merging struct {
	src       []base.Iterator
	one       base.Iterator // the only source: every call goes straight to it
	steps     []KeyStepper  // src as far as they are
	stretches []Stretcher   // likewise
	striders  []Strider     // likewise
	carriers  []Carrier     // likewise, once one was asked for
	saved     []byte        // the key that NextKey leaves
	moving    []int32       // the sources it moves, but for the winner

	heads    []head
	common   []byte // every live head's key begins with it
	tied     int    // keys that differ, and not in their prefixes, since align
	backward bool
	valid    bool
	err      error
	tournament
}

// head is where a source stands.
type head struct {
	// prefix orders like the eight bytes of key behind common in the current
	// direction; all ones if the source has run off. Different prefixes decide alone.
	prefix uint64
	key    []byte
	live   bool
}

// move is a way to position a source.
type move uint8

const (
	toFirst move = iota
	toLast
	toGE
	toLT
)

// NewMerging returns an unpositioned iterator over the sources, which it owns.
func NewMerging(sources ...base.Iterator) *Merging {
	m := &Merging{}
	m.Init(sources)
	return m
}

// Init makes m an unpositioned iterator over the sources, which it owns; the
// slice is copied. What m had before is forgotten, not closed.
func (m *Merging) Init(sources []base.Iterator) {
	clear(m.src)
	clear(m.heads)
	clear(m.steps)
	clear(m.stretches)
	clear(m.striders)
	clear(m.carriers)
	m.carriers = m.carriers[:0]
	m.src, m.steps, m.stretches, m.striders = append(m.src[:0], sources...), m.steps[:0], m.stretches[:0], m.striders[:0]
	for _, it := range sources {
		step, _ := it.(KeyStepper)
		stretch, _ := it.(Stretcher)
		stride, _ := it.(Strider)
		m.steps, m.stretches, m.striders = append(m.steps, step), append(m.stretches, stretch), append(m.striders, stride)
	}
	m.one, m.valid, m.err = nil, false, nil
	if len(sources) == 1 {
		m.one = sources[0]
		return
	}
	m.heads = slices.Grow(m.heads[:0], len(sources))[:len(sources)]
	m.tournament.init(len(sources))
}

// First implements base.Iterator.
func (m *Merging) First() bool {
	if m.one != nil {
		return m.one.First()
	}
	return m.position(toFirst, nil)
}

// Last implements base.Iterator.
func (m *Merging) Last() bool {
	if m.one != nil {
		return m.one.Last()
	}
	return m.position(toLast, nil)
}

// SeekGE implements base.Iterator.
func (m *Merging) SeekGE(key []byte) bool {
	if m.one != nil {
		return m.one.SeekGE(key)
	}
	return m.position(toGE, key)
}

// SeekLT implements base.Iterator.
func (m *Merging) SeekLT(key []byte) bool {
	if m.one != nil {
		return m.one.SeekLT(key)
	}
	return m.position(toLT, key)
}

func (m *Merging) position(how move, key []byte) bool {
	m.err, m.backward = nil, how == toLast || how == toLT
	m.common = m.common[:0] // the keys of heads may be gone: none is looked at before it is loaded
	for i, it := range m.src {
		var ok bool
		switch how {
		case toFirst:
			ok = it.First()
		case toLast:
			ok = it.Last()
		case toGE:
			ok = it.SeekGE(key)
		case toLT:
			ok = it.SeekLT(key)
		}
		if !m.load(int32(i), ok) {
			return false
		}
	}
	m.align()
	m.play(m)
	return m.settle()
}

// Next implements base.Iterator.
func (m *Merging) Next() bool {
	switch {
	case m.one != nil:
		return m.one.Next()
	case !m.valid:
		return false
	case m.backward:
		return m.turn()
	}
	return m.advance(m.src[m.win].Next())
}

// Prev implements base.Iterator.
func (m *Merging) Prev() bool {
	switch {
	case m.one != nil:
		return m.one.Prev()
	case !m.valid:
		return false
	case !m.backward:
		return m.turn()
	}
	return m.advance(m.src[m.win].Prev())
}

// advance takes up that the current source has moved on, ok telling whether it
// stands on an entry.
func (m *Merging) advance(ok bool) bool {
	if !m.load(m.win, ok) {
		return false
	}
	if m.tied >= mostTied {
		m.align()
	}
	if m.runner >= 0 && m.less(m.win, m.runner) {
		return true
	}
	m.replay(m)
	return m.settle()
}

// turn reverses the direction and steps. Every other source stands just beyond
// the current entry, or has run off there: one step brings it to the other side.
func (m *Merging) turn() bool {
	m.backward = !m.backward
	for i, it := range m.src {
		var ok bool
		switch live := m.heads[i].live; {
		case live && m.backward:
			ok = it.Prev()
		case live:
			ok = it.Next()
		case m.backward:
			ok = it.Last()
		default:
			ok = it.First()
		}
		if !m.load(int32(i), ok) {
			return false
		}
	}
	m.align()
	m.play(m)
	return m.settle()
}

// load notes where source i stands. It returns false after an error.
func (m *Merging) load(i int32, ok bool) bool {
	h := &m.heads[i]
	if !ok {
		*h = head{prefix: math.MaxUint64}
		if err := m.src[i].Err(); err != nil {
			m.err, m.valid = err, false
			return false
		}
		return true
	}
	h.key, h.live = m.src[i].Key(), true
	if n := len(m.common); n > 0 && (len(h.key) < n || !bytes.Equal(h.key[:n], m.common)) {
		m.common = m.common[:base.CommonPrefix(h.key, m.common)]
		m.setPrefixes()
		return true
	}
	m.setPrefix(h)
	return true
}

// Where keys have much in common their first eight bytes decide nothing: prefixes are taken
// behind what the keys that the sources stand on have in common. That shrinks when a key
// comes that begins otherwise, which changes the prefixes but not their order; and it is
// looked at anew when the prefixes of some keys have not told which comes first.
const (
	mostCommon = 64 // bytes
	mostTied   = 16 // keys
)

// align makes common what the keys of all heads begin with.
func (m *Merging) align() {
	m.common, m.tied = m.common[:0], 0
	first := true
	for i := range m.heads {
		switch key := m.heads[i].key; {
		case !m.heads[i].live:
		case first:
			m.common, first = append(m.common, key[:min(len(key), mostCommon)]...), false
		default:
			m.common = m.common[:base.CommonPrefix(key, m.common)]
		}
	}
	m.setPrefixes()
}

// setPrefixes sets the prefixes of all heads.
func (m *Merging) setPrefixes() {
	for i := range m.heads {
		if h := &m.heads[i]; h.live {
			m.setPrefix(h)
		}
	}
}

func (m *Merging) setPrefix(h *head) {
	h.prefix = base.Head(h.key[len(m.common):])
	if m.backward {
		h.prefix = ^h.prefix
	}
}

func (m *Merging) settle() bool {
	m.valid = len(m.heads) > 0 && m.heads[m.win].live
	return m.valid
}

// NextKey implements KeyStepper. Every source that stands on a version of the key moves to
// its own next key, over however many versions it has: a hot key has thousands.
func (m *Merging) NextKey() bool {
	switch {
	case m.one != nil:
		return nextKey(m.one, m.steps[0], &m.saved)
	case !m.valid:
		return false
	case m.backward:
		return m.nextKeyBack()
	}
	m.moving = m.moving[:0]
	if m.runner < 0 || m.sameKey(m.win, m.runner) {
		for i := range m.heads {
			if i := int32(i); i != m.win && m.sameKey(m.win, i) {
				m.moving = append(m.moving, i)
			}
		}
	}
	for _, i := range m.moving {
		if !m.load(i, nextKey(m.src[i], m.steps[i], &m.saved)) {
			return false
		}
	}
	ok := nextKey(m.src[m.win], m.steps[m.win], &m.saved)
	if len(m.moving) == 0 {
		return m.advance(ok)
	}
	if !m.load(m.win, ok) {
		return false
	}
	if m.tied >= mostTied {
		m.align()
	}
	m.play(m)
	return m.settle()
}

// newest moves the current source, which stands on a version that vis sees, to the newest of the key that it sees there,
// if it can tell cheaply and that is another one. Steps have been backward.
func (m *Merging) newest(vis base.Visibility) (moved bool) {
	step, ok := m.src[m.current()].(VersionStepper)
	if !ok || !step.Newest(vis) {
		return false
	}
	if m.one == nil {
		m.advance(true)
	}
	return true
}

// sole reports whether the entry that it stands on after steps backward, the oldest version of a key, is known to be the
// only one.
func (m *Merging) sole() bool {
	if t, ok := m.src[m.current()].(VersionTeller); !ok || !t.IsNewest() {
		return false
	}
	if m.one != nil || m.runner >= 0 {
		return m.one != nil || !m.sameKey(m.win, m.runner)
	}
	for i := range m.heads {
		if i := int32(i); i != m.win && m.sameKey(m.win, i) {
			return false
		}
	}
	return true
}

// nextKeyBack is NextKey after steps backward.
func (m *Merging) nextKeyBack() bool {
	m.saved = append(m.saved[:0], m.heads[m.win].key...)
	for m.Next() {
		if !equal(m.heads[m.win].key, m.saved) {
			return true
		}
	}
	return false
}

// sameKey reports whether two sources stand on versions of the same key.
func (m *Merging) sameKey(a, b int32) bool {
	ha, hb := &m.heads[a], &m.heads[b]
	return ha.prefix == hb.prefix && ha.live == hb.live && equal(ha.key, hb.key)
}

// less reports whether source a comes before source b in the current direction.
func (m *Merging) less(a, b int32) bool {
	pa, pb := m.heads[a].prefix, m.heads[b].prefix
	if pa != pb {
		return pa < pb
	}
	return m.lessTied(a, b)
}

func (m *Merging) lessTied(a, b int32) bool {
	ha, hb := &m.heads[a], &m.heads[b]
	if !ha.live || !hb.live {
		return ha.live
	}
	c := compareTied(ha.key[len(m.common):], hb.key[len(m.common):])
	if c != 0 {
		m.tied++
	} else {
		c = cmp.Compare(m.src[b].Seq(), m.src[a].Seq())
	}
	if c == 0 {
		c = cmp.Compare(a, b)
	}
	return (c < 0) != m.backward
}

// Valid implements base.Iterator.
func (m *Merging) Valid() bool {
	if m.one != nil {
		return m.one.Valid()
	}
	return m.valid
}

// Key implements base.Iterator.
func (m *Merging) Key() []byte {
	if m.one != nil {
		return m.one.Key()
	}
	return m.heads[m.win].key
}

// Seq implements base.Iterator.
func (m *Merging) Seq() uint64 { return m.src[m.current()].Seq() }

// Kind implements base.Iterator.
func (m *Merging) Kind() base.Kind { return m.src[m.current()].Kind() }

// Value implements base.Iterator.
func (m *Merging) Value() ([]byte, error) { return m.src[m.current()].Value() }

// current returns the source of the current entry.
func (m *Merging) current() int {
	if m.one != nil {
		return 0
	}
	return int(m.win)
}

// reload takes up that source i was moved, to where its place among the others is the
// same.
func (m *Merging) reload(i int) {
	if m.one == nil && m.heads[i].live {
		m.load(int32(i), true)
	}
}

// Err implements base.Iterator.
func (m *Merging) Err() error {
	if m.one != nil {
		return m.one.Err()
	}
	return m.err
}

// Close closes the sources and returns their first error. m is empty afterwards.
func (m *Merging) Close() error {
	var first error
	for _, it := range m.src {
		if err := it.Close(); first == nil {
			first = err
		}
	}
	m.Init(nil)
	return first
}
