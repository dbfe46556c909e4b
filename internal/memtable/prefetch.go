package memtable

import "github.com/cairndb/cairn/internal/prefetch"

// What follows brings parts of a table on their way to the processor, for who will want them soon.

// PrefetchSlot brings what an Insert of a key with the hash needs first on its way to the processor.
func (t *Table) PrefetchSlot(hash uint64) {
	prefetch.Word(&t.slots[t.home(uint32(hash>>32))])
}

// Prefetch brings the key of a record, and with value up to prefetch.Most bytes of all of it, on its way to the
// processor. It returns how many bytes these are.
func (t *Table) Prefetch(rec uint32, value bool) int {
	t.PrefetchKey(rec)
	if value {
		return t.prefetchRecord(rec)
	}
	return keyBytes
}

// PrefetchKey brings the key of a record, or its beginning, on its way to the processor.
func (t *Table) PrefetchKey(rec uint32) {
	if at := t.copyAt(rec); at != 0 {
		prefetch.Byte(&t.copies[at-1])
	} else {
		prefetch.Byte(&t.buf[t.at[rec]])
	}
}

// keyBytes is about what is brought on its way of a key.
const keyBytes = 64

// prefetchRecord brings up to prefetch.Most bytes of a record on their way, and returns how many these are.
func (t *Table) prefetchRecord(rec uint32) int {
	off, size := t.at[rec], uint32(keyBytes)
	if rec+1 < t.count.Load() { // what was written before the next one is its own, as a rule
		size = min(t.at[rec+1]-off, prefetch.Most)
	}
	t.PrefetchAt(off, int(size))
	return int(size)
}

// PrefetchAt brings size bytes of the buffer, from an offset on, on their way to the processor.
func (t *Table) PrefetchAt(off uint32, size int) {
	rest := t.buf[off:]
	prefetch.Lines(rest[:min(size, len(rest))])
}

// PrefetchBytes returns how many bytes of a record PrefetchAt is to bring: about what records take on average,
// prefetch.Most at most, and at least their keys.
func (t *Table) PrefetchBytes() int {
	last := t.count.Load() - 1
	if int32(last) < 1 {
		return keyBytes
	}
	return int(max(keyBytes, min((t.at[last]-t.at[0])/last, prefetch.Most)))
}
