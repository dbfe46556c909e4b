package memtable

import (
	"bytes"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Table is the index over a buffer of entries. See the package comment.
type Table struct {
	buf  []byte // what offsets refer to
	base uint64 // sequence of record 0

	// Columns, by record number.
	at   []uint32 // offset of the entry in buf
	prev []uint32 // 1 + record number of the key's previous version; 0: none
	tag  []uint32 // upper half of the key's hash
	copy []uint32 // 1 + offset in copies of the copy of the key; 0: none. A growing table has no such column

	copies []byte // of keys, each with its kind and length before it
	copied int    // bytes of copies in use

	slots []atomic.Uint64 // see slot; 0: free
	shift uint            // slot of tag t: t*golden >> shift
	used  int             // slots in use
	slot  slotLayout

	deletes atomic.Uint32 // records that are deletes of one key, no more than there are keys
	count   atomic.Uint32 // records published
	limit   atomic.Uint32 // records at or behind it do not exist (M3)

	ranges rangeDeletes
	order  order
	histories
	self [1]*Table     // for the order of this table only
	num  atomic.Uint32 // in the stack that it is a part of; 0: none

	mem  []byte // off-heap memory of a fixed table's columns and slots
	grow bool
}

const golden = 0x9E3779B1

// RecordBytes is what one record costs a fixed table besides the entry itself:
// four columns, and a slot at the load factor of at most 2/3.
const RecordBytes = 16

// Layout returns the off-heap bytes that a fixed table for n records needs.
func Layout(n int) int { return n*RecordBytes + slotCount(n)*8 }

// CopyBytes returns how many bytes more are of use in a table for n records over size
// bytes: room for copies of keys, at most a sixteenth of size.
func CopyBytes(n, size int) int { return min(n*copyGuess, size/16) }

const (
	copyGuess = 24  // bytes of a key with its kind and length
	nearValue = 96  // bytes: a key before a shorter value is not copied
	maxCopied = 255 // bytes of a key that is
)

func slotCount(n int) int { return 1 << bits.Len(uint(n+n/2)) }

// New makes a table for up to n records over buf. mem is at least Layout(n)
// bytes of off-heap memory of any content; the table uses it until it is no
// longer read, its slots are cleared here. What is beyond Layout(n) is for copies.
func New(buf, mem []byte, n int) *Table {
	t := &Table{buf: buf, mem: mem}
	t.self[0] = t
	slotBytes := slotCount(n) * 8
	clear(mem[:slotBytes])
	t.setSlots(arena.Words(mem[:slotBytes]))
	t.slot = layoutFor(n, len(buf))
	columns := arena.Halfwords(mem[slotBytes : slotBytes+n*RecordBytes])
	t.at, t.prev, t.tag, t.copy = columns[:n:n], columns[n:2*n:2*n], columns[2*n:3*n:3*n], columns[3*n:4*n]
	t.copies = mem[slotBytes+n*RecordBytes:]
	t.limit.Store(math.MaxUint32)
	return t
}

// NewGrowing makes an empty table on the Go heap for one goroutine, whose
// sequences begin at first. It grows as needed; SetBuffer tells where the
// entries are whenever they have moved.
func NewGrowing(first uint64) *Table {
	t := &Table{base: first, grow: true}
	t.self[0] = t
	t.limit.Store(math.MaxUint32)
	t.setSlots(make([]atomic.Uint64, 64))
	t.slot = noOffsets
	return t
}

func (t *Table) setSlots(slots []atomic.Uint64) {
	t.slots = slots
	t.shift = uint(32 - bits.Len(uint(len(slots)-1)))
}

// SetBuffer replaces the buffer of a growing table by one with the same content.
func (t *Table) SetBuffer(buf []byte) { t.buf = buf }

// SetBase sets the sequence of the first record. The table must be empty.
func (t *Table) SetBase(first uint64) { t.base = first }

// Memory returns the off-heap memory given to New, for its owner to recycle.
func (t *Table) Memory() []byte { return t.mem }

// Len returns the number of records, truncated ones left out.
func (t *Table) Len() int { return int(min(t.count.Load(), t.limit.Load())) }

// Keys returns how many keys the records are of. It looks at each.
func (t *Table) Keys() (n int) {
	for _, prev := range t.prev[:t.Len()] {
		if prev == 0 {
			n++
		}
	}
	return n
}

// Distinct returns how many keys the records are of, truncated ones included, to whoever inserts
// or when nobody does any more.
func (t *Table) Distinct() int { return t.used }

// Deletes returns how many records are deletes of one key, truncated ones included, but no more than there were keys: what is
// deleted again hides nothing more.
func (t *Table) Deletes() int { return int(t.deletes.Load()) }

// Records returns how many records a fixed table has room for.
func (t *Table) Records() int { return len(t.at) }

// Fits reports whether n more records can be inserted.
func (t *Table) Fits(n int) bool { return t.grow || int(t.count.Load())+n <= len(t.at) }

// Room reports whether n more records should be inserted: they fit, and the range
// deletes that are there, which take memory of the Go heap, do not take more than
// a quarter of the buffer's size. What the n records add to that does not count: so
// there is room in an empty table for any commit that fits.
func (t *Table) Room(n int) bool {
	return t.Fits(n) && (t.grow || t.RangeDeleteBytes() <= len(t.buf)/4)
}

// FirstSeq returns the sequence of the first record, present or to come.
func (t *Table) FirstSeq() uint64 { return t.base }

// LastSeq returns the sequence of the last record; FirstSeq-1 if there is none.
func (t *Table) LastSeq() uint64 { return t.base + uint64(t.Len()) - 1 }

// Truncate makes the records from n on never to have existed: their commits failed.
func (t *Table) Truncate(n int) { t.limit.Store(uint32(n)) }

// Insert adds the entry that stands at offset off of the buffer. hash is the
// key's base.Hash. Its sequence is base + number of records before it.
func (t *Table) Insert(off int, e *frame.Entry, hash uint64) {
	t.insert(off, e, hash)
	t.ranges.publish()
}

// insert is Insert, of a range delete that hides nothing before ranges.publish.
func (t *Table) insert(off int, e *frame.Entry, hash uint64) {
	if t.grow {
		t.makeRoom()
	}
	n := t.count.Load()
	tag := uint32(hash >> 32)
	t.at[n], t.prev[n], t.tag[n] = uint32(off), 0, tag
	if t.copy != nil {
		t.copy[n] = t.copyKey(e)
	}
	if e.Kind == base.KindRangeDelete {
		t.ranges.add(tombstone.Tombstone{Low: e.Key, High: e.Value, Seq: t.base + uint64(n)})
	} else {
		t.link(n, hash, uint32(off), e.Key)
		if e.Kind == base.KindDelete {
			t.deletes.Store(min(t.deletes.Load()+1, uint32(t.used)))
		}
	}
	t.count.Store(n + 1)
}

// InsertAll inserts the entries that stand in the buffer from one offset up to another, and returns how many
// these are and where the last one ends. If that is before the other offset, the next one is malformed or
// finds no room, and not all of those that are counted have been inserted. What range deletes hide, they hide when
// it returns: before, nobody has a snapshot that sees them.
func (t *Table) InsertAll(from, to int) (count, end int) {
	e, n := frame.DecodeEntry(t.buf[from:to])
	if n == 0 || from+n < to {
		count, end = t.insertAhead(from, to)
		t.ranges.publish()
		return count, end
	}
	if !t.Fits(1) {
		return 0, from
	}
	t.Insert(from, &e, base.Hash(e.Key))
	return 1, to
}

// insertAhead is InsertAll, of any number of entries, but for ranges.publish.
func (t *Table) insertAhead(from, to int) (count, end int) {
	var next [slotsAhead]struct {
		off  int
		e    frame.Entry
		hash uint64
	}
	for end = from; end < to; count++ {
		x := &next[count%slotsAhead]
		if count >= slotsAhead {
			t.insert(x.off, &x.e, x.hash)
		}
		n := x.e.Decode(t.buf[end:to])
		if n == 0 || !t.Fits(min(count, slotsAhead-1)+1) {
			return count, end
		}
		x.off, x.hash = end, base.Hash(x.e.Key)
		t.PrefetchSlot(x.hash)
		end += n
	}
	for i := max(0, count-slotsAhead); i < count; i++ {
		x := &next[i%slotsAhead]
		t.insert(x.off, &x.e, x.hash)
	}
	return count, end
}

// slotsAhead: the slots of so many entries are on their way to the processor at a time.
const slotsAhead = 8

// home returns the slot at which the search for a tag begins.
func (t *Table) home(tag uint32) uint32 { return tag * golden >> t.shift }

// copyKey copies the key of an entry whose neighbours' keys are far away, if there is
// room, and returns what stands in the column.
func (t *Table) copyKey(e *frame.Entry) uint32 {
	at, end := t.copied, t.copied+2+len(e.Key)
	switch {
	case e.Kind == base.KindRangeDelete || e.Kind != base.KindDelete && len(e.Value) < nearValue:
		return 0
	case len(e.Key) > maxCopied || end > len(t.copies):
		return 0
	}
	t.copies[at], t.copies[at+1] = byte(e.Kind), byte(len(e.Key))
	copy(t.copies[at+2:end], e.Key)
	t.copied = end
	return uint32(at) + 1
}

// key returns the kind and the key of a record, from the copy if there is one.
func (t *Table) key(rec uint32) (base.Kind, []byte) {
	if at := t.copyAt(rec); at != 0 {
		b := t.copies[at-1:]
		end := 2 + int(b[1])
		return base.Kind(b[0]), b[2:end:end]
	}
	b := t.buf[t.at[rec]:]
	return base.Kind(b[0]), frame.Key(b)
}

// copyAt returns 1 + the offset of the copy of a record's key, 0 if there is none.
func (t *Table) copyAt(rec uint32) uint32 {
	if t.copy == nil {
		return 0
	}
	return t.copy[rec]
}

// link publishes record n, which stands at an offset, in the slot of its key.
func (t *Table) link(n uint32, hash uint64, off uint32, key []byte) {
	mask := uint32(len(t.slots) - 1)
	for i := t.home(uint32(hash >> 32)); ; i = (i + 1) & mask {
		s := t.slots[i].Load()
		if s == 0 {
			t.used++
		} else if !t.slot.mayBe(s, hash) || !bytes.Equal(t.keyOf(s), key) {
			continue
		} else {
			t.prev[n] = t.slot.record(s)
		}
		t.slots[i].Store(t.slot.of(hash, off, n+1))
		return
	}
}

// keyOf returns the key that a slot is of: from a copy, which lies among others, if there is one.
func (t *Table) keyOf(s uint64) []byte {
	if rec := t.slot.record(s) - 1; t.copyAt(rec) != 0 {
		_, key := t.key(rec)
		return key
	}
	return frame.Key(t.buf[t.offset(s):])
}

// offset returns where the record that a slot leads to stands in the buffer.
func (t *Table) offset(s uint64) uint32 {
	if t.slot.offMask == 0 {
		return t.at[t.slot.record(s)-1]
	}
	return t.slot.offset(s)
}

func (t *Table) makeRoom() {
	n := int(t.count.Load())
	if n == len(t.at) {
		t.at, t.prev, t.tag = extend(t.at), extend(t.prev), extend(t.tag)
	}
	if t.used*3 < len(t.slots)*2 {
		return
	}
	old := t.slots
	t.setSlots(make([]atomic.Uint64, 2*len(old)))
	mask := uint32(len(t.slots) - 1)
	for k := range old {
		s := old[k].Load()
		if s == 0 {
			continue
		}
		i := t.home(uint32(s >> 32)) // of the hash a slot of a growing table has as much as a tag
		for t.slots[i].Load() != 0 {
			i = (i + 1) & mask
		}
		t.slots[i].Store(s)
	}
}

func extend(c []uint32) []uint32 {
	d := make([]uint32, max(16, 2*len(c)))
	copy(d, c)
	return d
}

// Reset empties a growing table for reuse; sequences begin at first again.
func (t *Table) Reset(first uint64) {
	t.base, t.used, t.buf = first, 0, nil
	if len(t.slots) > 1024 {
		t.setSlots(make([]atomic.Uint64, 64))
	} else {
		clear(t.slots)
	}
	t.count.Store(0)
	t.deletes.Store(0)
	t.ranges.reset()
	t.order.reset()
	t.histories.forget()
}

// decode sets e to a record.
func (t *Table) decode(e *frame.Entry, rec uint32) { e.Decode(t.buf[t.at[rec]:]) }

// Get sets e to the newest version of key that vis sees; without one, e means nothing. hash is
// the key's base.Hash. Range deletes are not considered: see Cover.
func (t *Table) Get(e *frame.Entry, key []byte, hash uint64, vis base.Visibility) (seq uint64, ok bool) {
	mask := uint32(len(t.slots) - 1)
	for i := t.home(uint32(hash >> 32)); ; i = (i + 1) & mask {
		s := t.slots[i].Load()
		if s == 0 {
			return 0, false
		}
		if t.slot.mayBe(s, hash) {
			off := t.offset(s)
			t.PrefetchAt(off, t.PrefetchBytes()) // all of it while the first line is waited for
			if e.Decode(t.buf[off:]); bytes.Equal(e.Key, key) {
				return t.version(e, hash, t.slot.record(s), vis)
			}
		}
	}
}

// version walks from a key's newest version e, record next-1, to the one vis sees. hash is the key's.
func (t *Table) version(e *frame.Entry, hash uint64, next uint32, vis base.Visibility) (seq uint64, ok bool) {
	limit := t.limit.Load()
	for passed := 0; next != 0; passed++ {
		rec := next - 1
		if seq := t.base + uint64(rec); rec < limit && vis.Sees(seq) {
			if passed > 0 {
				t.decode(e, rec)
			}
			return seq, true
		}
		if next = t.prev[rec]; passed == longChain {
			next = t.longBefore(hash, rec, next, limit, vis)
		}
	}
	return 0, false
}

// longBefore returns 1 + the newest record before rec, of its key, that vis sees, 0 if there is none; next if nothing is known.
func (t *Table) longBefore(hash uint64, rec, next, limit uint32, vis base.Visibility) uint32 {
	seen := func(rec uint32) bool { return rec < limit && vis.Sees(t.base+uint64(rec)) }
	if found, known := t.histories.find(t.prev, hash, rec, seen); known {
		return found
	}
	return next
}

// Key returns the key of record rec.
func (t *Table) Key(rec uint32) []byte {
	_, key := t.key(rec)
	return key
}

// Value returns the value of record rec.
func (t *Table) Value(rec uint32) []byte {
	var e frame.Entry
	t.decode(&e, rec)
	return e.Value
}

// EntryAt sets e to the record that stands at an offset of the buffer.
func (t *Table) EntryAt(e *frame.Entry, off uint32) { e.Decode(t.buf[off:]) }

// Record is one record in the order of insertion, for conflict checks.
type Record struct {
	Seq uint64
	Tag uint32 // upper half of the key's base.Hash; meaningless for range deletes
	frame.Entry
}

// Tag returns the hash tag of record i < Len without touching its entry. That of a
// range delete says nothing.
func (t *Table) Tag(i int) uint32 { return t.tag[i] }

// Changed is told what records put or delete: a key, or the keys from one to before another. They are valid as long as
// the table is.
type Changed interface {
	Change(kind base.Kind, key, end []byte)
}

// Changes tells of each record of sequences after one, up to another, all of which there are.
func (t *Table) Changes(after, upTo uint64, told Changed) {
	for rec, to := uint32(after+1-t.base), uint32(upTo+1-t.base); rec < to; rec++ {
		kind, key := t.key(rec)
		if kind != base.KindRangeDelete {
			told.Change(kind, key, nil)
			continue
		}
		var e frame.Entry
		t.decode(&e, rec)
		told.Change(kind, e.Key, e.Value)
	}
}

// Holds reports whether every record of sequences after one, up to another, is in the table.
func (t *Table) Holds(after, upTo uint64) bool { return t.base <= after+1 && t.LastSeq() >= upTo }

// Record returns record i < Len.
func (t *Table) Record(i int) Record {
	r := Record{Seq: t.base + uint64(i), Tag: t.tag[i]}
	t.decode(&r.Entry, uint32(i))
	return r
}
