package layout

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cairndb/cairn/internal/base"
)

const largestExclusive = 1 // flag of properties

var errProperties = errors.New("properties do not parse")

// AppendProperties appends what the table says of itself.
func AppendProperties(dst []byte, m *base.TableMeta) []byte {
	for _, n := range []uint64{m.Entries, m.Deletes, m.RangeDeletes, uint64(m.RawBytes), m.MinSeq, m.MaxSeq} {
		dst = binary.AppendUvarint(dst, n)
	}
	flags := byte(0)
	if m.LargestExclusive {
		flags |= largestExclusive
	}
	dst = append(dst, flags)
	for _, b := range [][]byte{m.Smallest, m.Largest} {
		dst = append(binary.AppendUvarint(dst, uint64(len(b))), b...)
	}
	return dst
}

// DecodeProperties is the inverse of AppendProperties. The bounds alias b.
func DecodeProperties(b []byte) (m base.TableMeta, err error) {
	d := decoder{b: b}
	m.Entries, m.Deletes, m.RangeDeletes = d.uvarint(), d.uvarint(), d.uvarint()
	m.RawBytes = int64(d.uvarint())
	m.MinSeq, m.MaxSeq = d.uvarint(), d.uvarint()
	flags := d.byte()
	m.LargestExclusive = flags&largestExclusive != 0
	m.Smallest = d.bytes(d.uvarint())
	m.Largest = d.bytes(d.uvarint())
	if d.bad || len(d.b) != 0 || flags&^largestExclusive != 0 {
		return m, errProperties
	}
	return m, nil
}

// Contradiction says in words where the manifest's record of a table and the
// table's own properties differ, "" if they agree.
func Contradiction(meta, props *base.TableMeta) string {
	seqOK := func(record, file uint64) bool {
		return record == file || meta.GlobalSeq != 0 && record == meta.GlobalSeq
	}
	switch {
	case meta.Entries != props.Entries || meta.Deletes != props.Deletes || meta.RangeDeletes != props.RangeDeletes:
		return "counts"
	case meta.RawBytes != props.RawBytes:
		return "raw size"
	case !seqOK(meta.MinSeq, props.MinSeq) || !seqOK(meta.MaxSeq, props.MaxSeq):
		return "sequences"
	case !bytes.Equal(meta.Smallest, props.Smallest) || !bytes.Equal(meta.Largest, props.Largest) ||
		meta.LargestExclusive != props.LargestExclusive:
		return "bounds"
	}
	return ""
}
