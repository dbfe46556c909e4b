package block

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/cairndb/cairn/internal/base"
)

const (
	trailerBytes = 64
	maxRowBytes  = 8 + 4 + 4 + 8 + 1 // what a row takes beside its key
)

// layout says where the columns of a form begin; 0 for a column that is not
// there because its rows are all alike (norms begin at 0).
type layout struct {
	keyEnds, valEnds, seqs, kinds, heap int
	seqBytes                            int // 0, 4 or 8 a row
	size                                int
}

func newLayout(rows, keyBytes int, keysDiffer, valsDiffer bool, seqSpread uint64, kindsDiffer bool) layout {
	l, at := layout{}, rows*8
	if seqSpread > 0 {
		if l.seqBytes = 4; seqSpread>>32 != 0 {
			l.seqBytes = 8
		}
		l.seqs = at
		at += rows * l.seqBytes
	}
	if keysDiffer {
		l.keyEnds = at
		at += (rows + 1) * 4
	}
	if valsDiffer {
		l.valEnds = at
		at += (rows + 1) * 4
	}
	if kindsDiffer {
		l.kinds = at
		at += rows
	}
	l.heap = at
	l.size = (at+keyBytes+trailerBytes-1)/trailerBytes*trailerBytes + trailerBytes
	return l
}

// formWriter fills a form from a stored page.
type formWriter struct {
	layout
	form  []byte
	older bool // some row is an older version of the one before
}

func (f *formWriter) putSeqs(s *storedKeys) {
	if f.seqBytes == 0 {
		return
	}
	var room [chunk]uint64
	c, at := s.seq, f.seqs
	for from := 0; from < s.rows; from += chunk {
		for _, x := range c.next(room[:], from, s.rows) {
			if x -= s.seqLow; f.seqBytes == 4 {
				binary.LittleEndian.PutUint32(f.form[at:], uint32(x))
			} else {
				binary.LittleEndian.PutUint64(f.form[at:], x)
			}
			at += f.seqBytes
		}
	}
}

func (f *formWriter) putKinds(s *storedKeys) {
	if f.kinds == 0 {
		return
	}
	var room [chunk]uint64
	c := s.kind
	for from := 0; from < s.rows; from += chunk {
		for i, x := range c.next(room[:], from, s.rows) {
			f.form[f.kinds+from+i] = byte(x)
		}
	}
}

func (f *formWriter) putValues(s *storedKeys) {
	if f.valEnds == 0 {
		return
	}
	end, at := uint32(0), f.valEnds
	binary.LittleEndian.PutUint32(f.form[at:], 0)
	var room [chunk]uint64
	c := s.val
	for from := 0; from < s.rows; from += chunk {
		for _, n := range c.next(room[:], from, s.rows) {
			end += uint32(n)
			at += 4
			binary.LittleEndian.PutUint32(f.form[at:], end)
		}
	}
}

// putKeys writes the key heap, the ends of keys and the norms, and checks that
// every row comes after the one before.
func (f *formWriter) putKeys(s *storedKeys) error {
	var lens, shares [chunk]uint64
	k := keyWriter{heap: f.form[f.heap:], end: s.keyBytes, suffixes: s.suffixes, prefix: s.prefix, prev: s.prefix}
	keyLen, shared := s.keyLen, s.shared
	for from := 0; from < s.rows; from += chunk {
		lens, shares := keyLen.next(lens[:], from, s.rows), shared.next(shares[:], from, s.rows)
		for i := 0; i < len(lens); i++ {
			if lens[i] <= 2*word {
				i += f.putShort(&k, from+i, lens[i:], shares[i:])
			}
			if i == len(lens) {
				break
			}
			if err := f.putKey(&k, from+i, lens[i], shares[i]); err != nil {
				return err
			}
		}
	}
	if k.at != k.end || len(k.suffixes) != 0 {
		return errLimits
	}
	if f.keyEnds > 0 {
		binary.LittleEndian.PutUint32(f.form[f.keyEnds+4*s.rows:], uint32(k.at))
	}
	return nil
}

// keyWriter writes keys to the heap one after another.
type keyWriter struct {
	heap     []byte // and what stands behind it, a trailer at least, which is written later
	end      int    // of the heap
	at       int    // end of prev in heap
	suffixes []byte // of the keys to come
	prefix   []byte // what all keys begin with
	prev     []byte // the key before; of the first one, the prefix
}

// putKey writes the key of a row. Both lengths are without the prefix.
func (f *formWriter) putKey(k *keyWriter, row int, rest, shared uint64) error {
	if plen := len(k.prefix); rest > uint64(base.MaxKeyBytes-plen) || shared > rest || shared > uint64(len(k.prev)-plen) {
		return errLimits
	}
	prev, n, sh := k.prev, len(k.prefix)+int(rest), len(k.prefix)+int(shared)
	if n > k.end-k.at || n-sh > len(k.suffixes) {
		return errShort
	}
	key := k.heap[k.at : k.at+n]
	copy(key, prev[:sh])
	copy(key[sh:], k.suffixes[:n-sh])
	if row > 0 && !follows(prev, key, sh) {
		if !f.isOlder(row, prev, key, sh) {
			return errOrder
		}
		f.older = true
	}
	f.putNorm(row, k.at, Norm(key[len(k.prefix):]))
	k.at, k.suffixes, k.prev = k.at+n, k.suffixes[n-sh:], key
	return nil
}

func (f *formWriter) putNorm(row, at int, norm uint64) {
	if f.keyEnds > 0 {
		binary.LittleEndian.PutUint32(f.form[f.keyEnds+4*row:], uint32(at))
	}
	binary.LittleEndian.PutUint64(f.form[8*row:], norm)
}

// word is what short keys are put together in.
const word = 8

// putShort is putKey for as many rows as are short, in order, and have two words of suffixes: it returns how many. What
// stands behind the prefix is put together in numbers, big-endian, in which nothing is meant by what lies beyond a key's
// end: a processor that reads back what it has just written in other pieces waits until all of them are in its cache.
func (f *formWriter) putShort(k *keyWriter, row int, lens, shares []uint64) (done int) {
	plen := len(k.prefix)
	if plen > base.MaxKeyBytes-2*word {
		return 0
	}
	p0, p1 := twoWords(k.prefix)
	high, low := twoWords(k.prev[plen:])
	before, at, suffixes := uint64(len(k.prev)-plen), k.at, k.suffixes
	shares = shares[:len(lens)]
	for i, rest := range lens {
		sh := shares[i]
		if sh >= rest || sh > before || rest > 2*word || plen+int(rest) > k.end-at || len(suffixes) < 2*word {
			break
		}
		a, b := binary.BigEndian.Uint64(suffixes), binary.BigEndian.Uint64(suffixes[word:])
		s, last := 8*sh&63, high
		if sh < word {
			high = high&^(math.MaxUint64>>s) | a>>s
			low = b>>s | a<<1<<(63-s)
		} else {
			last = low
			low = low&^(math.MaxUint64>>s) | a>>s
		}
		if a>>56 <= last<<s>>56 && sh < before {
			break // putKey says what is wrong
		}
		room := k.heap[at:][:plen+4*word]
		if binary.BigEndian.PutUint64(room, p0); plen > word {
			binary.BigEndian.PutUint64(room[word:], p1)
		}
		if plen > 2*word {
			copy(room[2*word:plen], k.prefix[2*word:])
		}
		room = room[plen:]
		binary.BigEndian.PutUint64(room, high)
		binary.BigEndian.PutUint64(room[word:], low)
		f.putNorm(row+i, at, high&^(math.MaxUint64>>(8*rest)))
		before, at, suffixes, done = rest, at+plen+int(rest), suffixes[rest-sh:], i+1
	}
	if done > 0 {
		k.at, k.suffixes, k.prev = at, suffixes, k.heap[at-plen-int(before):at]
	}
	return done
}

// twoWords returns the first two words of b, big-endian and filled up with zeros.
func twoWords(b []byte) (high, low uint64) {
	var p [2 * word]byte
	copy(p[:], b)
	return binary.BigEndian.Uint64(p[:]), binary.BigEndian.Uint64(p[word:])
}

// follows reports whether key > prev, given that their first sh bytes are equal.
func follows(prev, key []byte, sh int) bool {
	return len(key) > sh && (len(prev) == sh || key[sh] > prev[sh])
}

// isOlder reports whether row i is an older version of the key of the row before.
func (f *formWriter) isOlder(i int, prev, key []byte, sh int) bool {
	if len(prev) != sh || len(key) != sh || f.seqBytes == 0 {
		return false
	}
	at := f.form[f.seqs+(i-1)*f.seqBytes:]
	if f.seqBytes == 4 {
		return binary.LittleEndian.Uint32(at[4:]) < binary.LittleEndian.Uint32(at)
	}
	return binary.LittleEndian.Uint64(at[8:]) < binary.LittleEndian.Uint64(at)
}

// putTrailer is the last 64 bytes of a form:
//
//	0  rows          16  sequence of all rows,    32  keyEnds   44  kinds     52  kind of all rows
//	4  prefixLen         or the least             36  valEnds   48  heap      53  seqBytes
//	8  key length    24  value length of all rows 40  seqs                    54  1: some key has older versions
//	   of all rows
func (f *formWriter) putTrailer(s *storedKeys) {
	t, le := f.form[len(f.form)-trailerBytes:], binary.LittleEndian
	le.PutUint32(t[0:], uint32(s.rows))
	le.PutUint32(t[4:], uint32(len(s.prefix)))
	le.PutUint32(t[8:], uint32(uint64(len(s.prefix))+s.keyLen.base))
	le.PutUint64(t[16:], s.seqLow)
	le.PutUint32(t[24:], uint32(s.val.base))
	le.PutUint32(t[32:], uint32(f.keyEnds))
	le.PutUint32(t[36:], uint32(f.valEnds))
	le.PutUint32(t[40:], uint32(f.seqs))
	le.PutUint32(t[44:], uint32(f.kinds))
	le.PutUint32(t[48:], uint32(f.heap))
	t[52], t[53] = byte(s.kind.base), byte(f.seqBytes)
	if f.older {
		t[54] = 1
	}
}

// Keys is a key page in memory, directly indexable. Rows are numbered from 0.
// It aliases the form it was made from and is valid as long as that is.
type Keys struct {
	form                                []byte
	seq                                 uint64 // of all rows, or the least
	rows, prefixLen, keyLen, valLen     uint32
	keyEnds, valEnds, seqs, kinds, heap uint32
	kind                                base.Kind
	seqBytes                            uint8
	older                               bool // some row is an older version of the one before
}

// Cursor stands on a row of a key page whose values are at hand, or not yet.
type Cursor struct {
	Keys
	Row    int
	Values []byte // the value heap of the block; nil: not loaded
}

// Key returns the key of the row.
func (c *Cursor) Key() []byte { return c.Keys.Key(c.Row) }

// Value returns the row's value, and whether that could be told without loading values.
func (c *Cursor) Value() (value []byte, ok bool) {
	off, n := c.Keys.Value(c.Row)
	if n == 0 {
		return EmptyValue, true
	}
	if c.Values == nil {
		return nil, false
	}
	return c.Values[off : off+n : off+n], true
}

// EmptyValue is the value of a put of nothing: present, unlike nil.
var EmptyValue = []byte{}

// View reads the trailer of a form that Expand made.
func View(form []byte) (k Keys) {
	k.View(form)
	return k
}

// View makes k the keys of a form that Expand made.
func (k *Keys) View(form []byte) {
	t, le := form[len(form)-trailerBytes:], binary.LittleEndian
	_ = t[trailerBytes-1]
	k.form = form
	k.rows, k.prefixLen, k.keyLen = le.Uint32(t[0:]), le.Uint32(t[4:]), le.Uint32(t[8:])
	k.seq, k.valLen = le.Uint64(t[16:]), le.Uint32(t[24:])
	k.keyEnds, k.valEnds, k.seqs = le.Uint32(t[32:]), le.Uint32(t[36:]), le.Uint32(t[40:])
	k.kinds, k.heap = le.Uint32(t[44:]), le.Uint32(t[48:])
	k.kind, k.seqBytes, k.older = base.Kind(t[52]), t[53], t[54] != 0
}

// Plain reports whether every row is a put, and no key has more than one.
func (k *Keys) Plain() bool { return k.kinds == 0 && k.kind == base.KindPut && !k.older }

// Single reports whether no key has more than one row.
func (k *Keys) Single() bool { return !k.older }

// Unsequenced reports whether no row has a sequence.
func (k *Keys) Unsequenced() bool { return k.seqBytes == 0 && k.seq == 0 }

// Rows returns the number of rows, 0 for the zero Keys.
func (k *Keys) Rows() int { return int(k.rows) }

// Key returns the key of row i, without copying.
func (k *Keys) Key(i int) []byte {
	if k.keyEnds == 0 {
		at := int(k.heap) + i*int(k.keyLen)
		return k.form[at : at+int(k.keyLen) : at+int(k.keyLen)]
	}
	ends := k.form[int(k.keyEnds)+4*i:]
	from, to := k.heap+binary.LittleEndian.Uint32(ends), k.heap+binary.LittleEndian.Uint32(ends[4:])
	return k.form[from:to:to]
}

// Seq returns the sequence of row i as stored.
func (k *Keys) Seq(i int) uint64 {
	switch k.seqBytes {
	case 0:
		return k.seq
	case 4:
		return k.seq + uint64(binary.LittleEndian.Uint32(k.form[int(k.seqs)+4*i:]))
	}
	return k.seq + binary.LittleEndian.Uint64(k.form[int(k.seqs)+8*i:])
}

// Kind returns the kind of row i.
func (k *Keys) Kind(i int) base.Kind {
	if k.kinds == 0 {
		return k.kind
	}
	return base.Kind(k.form[int(k.kinds)+i])
}

// Value returns where in the block's value heap the value of row i stands.
func (k *Keys) Value(i int) (off, n int) {
	if k.valEnds == 0 {
		return i * int(k.valLen), int(k.valLen)
	}
	ends := k.form[int(k.valEnds)+4*i:]
	off = int(binary.LittleEndian.Uint32(ends))
	return off, int(binary.LittleEndian.Uint32(ends[4:])) - off
}

// KeyBytes returns the size of all keys.
func (k *Keys) KeyBytes() int {
	if k.keyEnds == 0 {
		return int(k.rows) * int(k.keyLen)
	}
	return int(binary.LittleEndian.Uint32(k.form[int(k.keyEnds)+4*int(k.rows):]))
}

// ValueBytes returns the size of the block's value heap.
func (k *Keys) ValueBytes() int {
	off, n := k.Value(k.Rows() - 1)
	return off + n
}

// SearchGE returns the first row whose key is >= key, Rows() if there is none.
func (k *Keys) SearchGE(key []byte) int {
	prefix := k.form[k.heap : k.heap+k.prefixLen]
	if c := bytes.Compare(key[:min(len(key), len(prefix))], prefix); c != 0 {
		if c < 0 {
			return 0
		}
		return k.Rows()
	}
	norm := Norm(key[len(prefix):])
	low, high := 0, k.Rows()
	for low < high {
		if mid := int(uint(low+high) / 2); k.norm(mid) < norm {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == k.Rows() || k.norm(low) != norm {
		return low
	}
	return k.searchEqual(key, low, norm)
}

// searchEqual ends SearchGE among the rows from low on whose norm equals key's.
func (k *Keys) searchEqual(key []byte, low int, norm uint64) int {
	if bytes.Compare(k.Key(low), key) >= 0 {
		return low
	}
	high := k.Rows()
	for low < high {
		mid := int(uint(low+high) / 2)
		if n := k.norm(mid); n < norm || n == norm && bytes.Compare(k.Key(mid), key) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (k *Keys) norm(i int) uint64 { return binary.LittleEndian.Uint64(k.form[8*i:]) }

// Norm returns the first 8 bytes of b as a big-endian integer, zero padded:
// Norm(a) < Norm(b) implies a < b.
func Norm(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	x := uint64(0)
	for i, c := range b {
		x |= uint64(c) << (56 - 8*i)
	}
	return x
}
