package block

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/cairndb/cairn/internal/base"
)

// MaxRows is how many rows a block may have: a row number fits in 16 bits.
const MaxRows = 1<<16 - 1

// KeyBuilder gathers the rows of one block and encodes its key page. The zero
// value is ready for use. The caller keeps rows in order and within the limits:
// MaxRows, FormBound at most MaxPageBytes.
type KeyBuilder struct {
	keys    []byte // all keys, whole, one after another
	ends    []int  // end of each key in keys
	seqs    []uint64
	kinds   []uint64
	valLens []uint64

	// Of the last Encode.
	keyLens, shared []uint64
	columns         columnWriter
	form            layout
}

// Rows returns the number of rows added since Reset.
func (b *KeyBuilder) Rows() int { return len(b.ends) }

// KeyBytes returns the sum of the lengths of the keys.
func (b *KeyBuilder) KeyBytes() int { return len(b.keys) }

// Reset forgets all rows and keeps the memory.
func (b *KeyBuilder) Reset() {
	b.keys, b.ends = b.keys[:0], b.ends[:0]
	b.seqs, b.kinds, b.valLens = b.seqs[:0], b.kinds[:0], b.valLens[:0]
}

// Add adds a row; key is copied.
func (b *KeyBuilder) Add(key []byte, seq uint64, kind base.Kind, valueBytes int) {
	b.keys = append(b.keys, key...)
	b.ends = append(b.ends, len(b.keys))
	b.seqs = append(b.seqs, seq)
	b.kinds = append(b.kinds, uint64(kind))
	b.valLens = append(b.valLens, uint64(valueBytes))
}

// FormBound returns an upper bound of what FormBytes will be after one more row
// with a key of the given length.
func (b *KeyBuilder) FormBound(keyBytes int) int {
	return (b.Rows()+2)*maxRowBytes + len(b.keys) + keyBytes + 2*trailerBytes
}

func (b *KeyBuilder) key(i int) []byte {
	if i == 0 {
		return b.keys[:b.ends[0]]
	}
	return b.keys[b.ends[i-1]:b.ends[i]]
}

// prefixLen is what the first and the last, hence all keys begin with.
func (b *KeyBuilder) prefixLen() int { return CommonPrefix(b.key(0), b.key(b.Rows()-1)) }

// Encode appends the stored form of the key page to dst. There must be a row.
func (b *KeyBuilder) Encode(dst []byte) []byte {
	prefix := b.prefixLen()
	dst = binary.AppendUvarint(dst, uint64(b.Rows()))
	dst = binary.AppendUvarint(dst, uint64(len(b.keys)))
	dst = binary.AppendUvarint(dst, uint64(prefix))
	dst = append(dst, b.keys[:prefix]...)
	b.compare(prefix)
	dst, seqs := b.columns.append(dst, b.seqs)
	dst, kinds := b.columns.append(dst, b.kinds)
	dst, vals := b.columns.append(dst, b.valLens)
	dst, keys := b.columns.append(dst, b.keyLens)
	dst, _ = b.columns.append(dst, b.shared)
	b.form = newLayout(b.Rows(), len(b.keys), keys > 0, vals > 0, seqs, kinds > 0)
	start := 0
	for i, n := range b.shared {
		dst = append(dst, b.keys[start+prefix+int(n):b.ends[i]]...)
		start = b.ends[i]
	}
	return dst
}

// compare sets keyLens and shared, both counted from the common prefix on.
func (b *KeyBuilder) compare(prefix int) {
	b.keyLens, b.shared = b.keyLens[:0], b.shared[:0]
	start, prev := 0, b.keys[:prefix]
	for _, end := range b.ends {
		key := b.keys[start:end]
		b.keyLens = append(b.keyLens, uint64(len(key)-prefix))
		b.shared = append(b.shared, uint64(CommonPrefix(prev, key)-prefix))
		start, prev = end, key
	}
}

// FormBytes returns the size of the form in memory of the page Encode made
// last, as the index states it.
func (b *KeyBuilder) FormBytes() int { return b.form.size }

var (
	errShort  = errors.New("key page ends early")
	errLimits = errors.New("key page is outside its limits")
	errOrder  = errors.New("rows of a key page are not in order")
	errForm   = errors.New("key page does not have the form the index states")
)

// storedKeys is the parsed stored form.
type storedKeys struct {
	rows, keyBytes       int
	prefix               []byte
	seq, kind, val       column
	keyLen, shared       column
	suffixes             []byte
	seqLow, seqHigh, sum uint64 // extremes of seq, sum of val
}

func parseKeys(b []byte) (s storedKeys, err error) {
	rows, b, ok1 := cutUvarint(b)
	keyBytes, b, ok2 := cutUvarint(b)
	prefix, b, ok3 := cutUvarint(b)
	if !ok1 || !ok2 || !ok3 || prefix > uint64(len(b)) {
		return s, errShort
	}
	if rows == 0 || rows > MaxRows || keyBytes > MaxPageBytes || prefix > base.MaxKeyBytes {
		return s, errLimits
	}
	s.rows, s.keyBytes, s.prefix, b = int(rows), int(keyBytes), b[:prefix], b[prefix:]
	for _, c := range []*column{&s.seq, &s.kind, &s.val, &s.keyLen, &s.shared} {
		ok := false
		if *c, b, ok = cutColumn(b, s.rows); !ok {
			return s, errShort
		}
	}
	s.suffixes = b
	return s, s.measure()
}

// measure finds the extremes that decide the form and checks the limits of
// sequences, kinds and values.
func (s *storedKeys) measure() error {
	var kind, val uint64 // the greatest
	s.seqLow, s.seqHigh, _ = s.seq.survey(s.rows)
	_, kind, _ = s.kind.survey(s.rows)
	_, val, s.sum = s.val.survey(s.rows)
	if kind > uint64(base.KindPut) || val > base.MaxValueBytes || s.seqHigh > base.MaxSeq || s.rows > 1 && s.sum > MaxPageBytes {
		return errLimits
	}
	return nil
}

func (s *storedKeys) layout() layout {
	return newLayout(s.rows, s.keyBytes, !s.keyLen.constant(), !s.val.constant(), s.seqHigh-s.seqLow, !s.kind.constant())
}

// Expand makes the form in memory of a stored key page in form, all of which is
// written. It fails if form does not have the right size or rows are not in order.
func Expand(form, stored []byte) error {
	s, err := parseKeys(stored)
	if err != nil {
		return err
	}
	l := s.layout()
	if l.size != len(form) {
		return errForm
	}
	f := formWriter{layout: l, form: form}
	f.putSeqs(&s)
	f.putKinds(&s)
	f.putValues(&s)
	if err := f.putKeys(&s); err != nil {
		return err
	}
	clear(form[l.heap+s.keyBytes:])
	f.putTrailer(&s)
	return nil
}

// CommonPrefix returns the length of the longest common prefix of a and b.
func CommonPrefix(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}
