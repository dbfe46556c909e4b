package mvcc

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// points is a hash set of exact keys. The zero value is empty.
type points struct {
	keys  []byte   // the keys, one behind the other, each with a zero byte behind it
	list  []point  // has capacity for two thirds of the slots
	slots []uint32 // 1 + index of a key by tag; 0: free
	order []uint32 // of the keys, if it is as long as list: see Order
}

type point struct {
	end uint32 // of the key in keys, its zero byte included
	tag uint32 // upper half of the key's hash
}

const (
	pointBytes = 8 // of a point
	slotBytes  = 4
)

// Len returns the number of exact keys.
func (p *points) Len() int { return len(p.list) }

// Key returns the i-th exact key.
func (p *points) Key(i int) []byte {
	g := p.span(i)
	return g.Low
}

// span returns the i-th exact key as the range that holds nothing else.
func (p *points) span(i int) Range {
	from := uint32(0)
	if i > 0 {
		from = p.list[i-1].end
	}
	end := p.list[i].end
	return Range{p.keys[from : end-1 : end-1], p.keys[from:end:end]}
}

// memory returns the bytes that p holds.
func (p *points) memory() int { return cap(p.keys) + pointBytes*cap(p.list) + slotBytes*cap(p.slots) }

// fits reports whether a key of n bytes can be added without growing.
func (p *points) fits(n int) bool {
	return len(p.list) < cap(p.list) && n < cap(p.keys)-len(p.keys)
}

// growth returns how many bytes of keys and how many slots p has to have for
// another key of n bytes; 0 for what it has already.
func (p *points) growth(n int) (keys, slots int) {
	if n >= cap(p.keys)-len(p.keys) {
		keys = max(32, 2*cap(p.keys), len(p.keys)+n+1)
	}
	if len(p.list) == cap(p.list) {
		slots = max(8, 2*len(p.slots))
	}
	return keys, slots
}

// need returns the bytes that growing for a key of n bytes takes, besides those
// that p holds until it has grown.
func (p *points) need(n int) int {
	keys, slots := p.growth(n)
	return keys + pointBytes*(slots*2/3) + slotBytes*slots
}

func (p *points) grow(n int) {
	keys, slots := p.growth(n)
	if keys > 0 {
		p.keys = append(make([]byte, 0, keys), p.keys...)
	}
	if slots > 0 {
		p.list = append(make([]point, 0, slots*2/3), p.list...)
		p.slots = make([]uint32, slots)
		for i := range p.list {
			p.put(i)
		}
	}
}

// add adds a key that fits and is not there yet.
func (p *points) add(key []byte, tag uint32) {
	p.keys = append(append(p.keys, key...), 0)
	p.list = append(p.list, point{uint32(len(p.keys)), tag})
	p.put(len(p.list) - 1)
}

func (p *points) slot(tag uint32) uint32 {
	return tag * 0x9E3779B1 >> (32 - bits.Len(uint(len(p.slots)-1)))
}

func (p *points) put(i int) {
	mask := uint32(len(p.slots) - 1)
	k := p.slot(p.list[i].tag)
	for p.slots[k] != 0 {
		k = (k + 1) & mask
	}
	p.slots[k] = uint32(i + 1)
}

// find returns the index of key, or -1.
func (p *points) find(tag uint32, key []byte) int {
	if len(p.slots) == 0 {
		return -1
	}
	mask := uint32(len(p.slots) - 1)
	for k := p.slot(tag); p.slots[k] != 0; k = (k + 1) & mask {
		if i := int(p.slots[k] - 1); p.list[i].tag == tag && bytes.Equal(p.Key(i), key) {
			return i
		}
	}
	return -1
}

// mayHave reports whether some exact key has the given tag.
func (p *points) mayHave(tag uint32) bool {
	if len(p.slots) == 0 {
		return false
	}
	mask := uint32(len(p.slots) - 1)
	for k := p.slot(tag); p.slots[k] != 0; k = (k + 1) & mask {
		if p.list[p.slots[k]-1].tag == tag {
			return true
		}
	}
	return false
}

// fewKeys are looked through one by one.
const fewKeys = 64

// Ordered reports whether a key that lies in a range is found at once.
func (p *points) Ordered() bool { return len(p.list) <= fewKeys || len(p.order) == len(p.list) }

// Order puts the keys in order, so that one that lies in a range is found at once, until there are more.
func (p *points) Order() {
	if !p.Ordered() {
		p.order = p.ordered()
	}
}

// in returns a key of [low, high), nil if there is none.
func (p *points) in(low, high []byte) []byte {
	if len(p.list) <= fewKeys {
		for i := range p.list {
			if k := p.Key(i); bytes.Compare(k, low) >= 0 && bytes.Compare(k, high) < 0 {
				return k
			}
		}
		return nil
	}
	p.Order()
	i := sort.Search(len(p.order), func(i int) bool { return bytes.Compare(p.Key(int(p.order[i])), low) >= 0 })
	if i == len(p.order) || bytes.Compare(p.Key(int(p.order[i])), high) >= 0 {
		return nil
	}
	return p.Key(int(p.order[i]))
}

// ordered returns the indexes of the keys in the order of the keys.
func (p *points) ordered() []uint32 {
	order := make([]uint32, len(p.list))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return bytes.Compare(p.Key(int(a)), p.Key(int(b))) })
	return order
}

func (p *points) reset() {
	clear(p.slots)
	p.keys, p.list, p.order = p.keys[:0], p.list[:0], nil
}
