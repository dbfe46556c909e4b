package memtable

import "math/bits"

// A slot is a word: from the lowest bit on 1 + the number of the newest record of a key, where that stands in the
// buffer, and in what bits are left a part of the key's hash. So whoever looks a key up is led to the record by the
// slot itself, and waits for memory twice. Where too few bits would be left for the hash the slot has no offset, and
// the column of offsets is asked.
type slotLayout struct {
	recBits          uint8
	recMask, offMask uint64
	hashMask         uint64 // of the hash's upper bits, which stand where they do in it
}

// leastHash is how many bits of the hash a slot has at least: of the keys whose search passes by a slot of another
// one's, there is one in as many as these can tell apart for which that one's record is looked at in vain.
const leastHash = 8

// noOffsets is the layout without offsets, whose hash is the tag.
var noOffsets = slotLayout{recBits: 32, recMask: 1<<32 - 1, hashMask: 1<<64 - 1<<32}

// layoutFor returns the layout of the slots of a table for n records over size bytes.
func layoutFor(n, size int) slotLayout {
	rec, off := bits.Len(uint(n)), bits.Len(uint(max(size, 1)-1))
	if rec+off > 64-leastHash {
		return noOffsets
	}
	return slotLayout{recBits: uint8(rec), recMask: 1<<rec - 1, offMask: 1<<off - 1, hashMask: ^uint64(0) << (rec + off)}
}

// of returns the slot of a key whose newest record stands at an offset; rec is 1 + its number.
func (l *slotLayout) of(hash uint64, off, rec uint32) uint64 {
	return hash&l.hashMask | uint64(off)&l.offMask<<(l.recBits&63) | uint64(rec)
}

// mayBe reports whether a slot may be that of a key.
func (l *slotLayout) mayBe(s, hash uint64) bool { return (s^hash)&l.hashMask == 0 }

// record returns 1 + the number of a slot's record.
func (l *slotLayout) record(s uint64) uint32 { return uint32(s & l.recMask) }

// offset returns where a slot's record stands, if it says so.
func (l *slotLayout) offset(s uint64) uint32 { return uint32(s >> (l.recBits & 63) & l.offMask) }
