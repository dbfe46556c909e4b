package layout

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/tombstone"
)

var errTombstones = errors.New("range tombstones do not parse or are not in order")

// tombstoneOrder is the order of tombstones in a file.
func tombstoneOrder(a, b tombstone.Tombstone) int {
	return cmp.Or(bytes.Compare(a.Low, b.Low), cmp.Compare(b.Seq, a.Seq), bytes.Compare(a.High, b.High))
}

// SortTombstones puts ts in the order of the file, each once.
func SortTombstones(ts []tombstone.Tombstone) []tombstone.Tombstone {
	slices.SortFunc(ts, tombstoneOrder)
	return slices.CompactFunc(ts, func(a, b tombstone.Tombstone) bool { return tombstoneOrder(a, b) == 0 })
}

// AppendTombstone appends t to a page of range tombstones.
func AppendTombstone(dst []byte, t tombstone.Tombstone) []byte {
	dst = binary.AppendUvarint(dst, t.Seq)
	dst = append(binary.AppendUvarint(dst, uint64(len(t.Low))), t.Low...)
	return append(binary.AppendUvarint(dst, uint64(len(t.High))), t.High...)
}

// DecodeTombstones appends the tombstones of a page to ts. They alias page.
func DecodeTombstones(ts []tombstone.Tombstone, page []byte) ([]tombstone.Tombstone, error) {
	for d := (decoder{b: page}); len(d.b) > 0; {
		t := tombstone.Tombstone{Seq: d.uvarint()}
		t.Low = d.bytes(d.uvarint())
		t.High = d.bytes(d.uvarint())
		if d.bad || t.Empty() || t.Seq > base.MaxSeq || max(len(t.Low), len(t.High)) > base.MaxKeyBytes {
			return nil, errTombstones
		}
		if n := len(ts); n > 0 && tombstoneOrder(ts[n-1], t) >= 0 {
			return nil, errTombstones
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// CoverBounds extends the bounds of m, which says of rows whether there are any,
// by those of a tombstone.
func CoverBounds(m *base.TableMeta, t tombstone.Tombstone, first bool) {
	if first || bytes.Compare(t.Low, m.Smallest) < 0 {
		m.Smallest = t.Low
	}
	if c := bytes.Compare(t.High, m.Largest); first || c > 0 {
		m.Largest, m.LargestExclusive = t.High, true
	}
}
