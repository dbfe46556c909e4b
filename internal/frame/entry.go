package frame

import (
	"bytes"
	"encoding/binary"

	"github.com/cairndb/cairn/internal/base"
)

// Entry is one entry of a commit: a put, a delete, or a range delete whose Value
// is the range's end, which is a key behind Key. Key and Value alias the payload they were decoded from.
type Entry struct {
	Kind       base.Kind
	Key, Value []byte
}

// MaxEntryHeaderBytes bounds what AppendEntry adds to a key and a value.
const MaxEntryHeaderBytes = 1 + 2*binary.MaxVarintLen32

// AppendEntry appends the encoding of an entry:
//
//	entry := kind(1) keyLength(uvarint) [valueLength(uvarint)] key [value]
//
// The parts in brackets are absent in a delete.
func AppendEntry(dst []byte, kind base.Kind, key, value []byte) []byte {
	return AppendPrefixed(dst, kind, nil, key, value)
}

// AppendPrefixed is AppendEntry for a key that comes as a prefix and the rest.
func AppendPrefixed(dst []byte, kind base.Kind, prefix, key, value []byte) []byte {
	dst = AppendHead(dst, kind, prefix, key, len(value))
	if kind != base.KindDelete {
		dst = append(dst, value...)
	}
	return dst
}

// AppendHead is AppendPrefixed without the value, which has n bytes.
func AppendHead(dst []byte, kind base.Kind, prefix, key []byte, n int) []byte {
	dst = append(dst, byte(kind))
	dst = binary.AppendUvarint(dst, uint64(len(prefix)+len(key)))
	if kind != base.KindDelete {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return append(append(dst, prefix...), key...)
}

// DecodeEntry decodes the entry at the start of b and returns its length n, or
// n == 0 if b does not begin with a well-formed entry.
func DecodeEntry(b []byte) (e Entry, n int) {
	n = e.Decode(b)
	return e, n
}

// Decode is DecodeEntry into e, which is zero if b does not begin with a well-formed entry.
func (e *Entry) Decode(b []byte) (n int) {
	*e = Entry{}
	if len(b) < 2 || !base.Kind(b[0]).Known() {
		return 0
	}
	kind, vlen := base.Kind(b[0]), 0
	klen, at, ok := length(b, 1, base.MaxKeyBytes)
	if !ok || klen == 0 {
		return 0
	}
	if kind != base.KindDelete {
		if vlen, at, ok = length(b, at, base.MaxValueBytes); !ok {
			return 0
		}
	}
	if len(b)-at < klen+vlen {
		return 0
	}
	n = at + klen + vlen
	e.Kind, e.Key = kind, b[at:at+klen:at+klen]
	if kind != base.KindDelete {
		if e.Value = b[at+klen : n : n]; kind == base.KindRangeDelete && (vlen > base.MaxKeyBytes || bytes.Compare(e.Key, e.Value) >= 0) {
			*e = Entry{}
			return 0
		}
	}
	return n
}

// Key returns the key of the entry that begins b, whose value need not be there; nil if that is none.
func Key(b []byte) []byte {
	if len(b) > 2 && b[1]|b[2] < 0x80 && base.Kind(b[0]) == base.KindPut { // as most are
		if end := 3 + int(b[1]); end <= len(b) {
			return b[3:end:end]
		}
	}
	if len(b) == 0 {
		return nil
	}
	klen, at, ok := length(b, 1, base.MaxKeyBytes)
	if ok && base.Kind(b[0]) != base.KindDelete {
		_, at, ok = length(b, at, base.MaxValueBytes)
	}
	if !ok || len(b)-at < klen {
		return nil
	}
	return b[at : at+klen : at+klen]
}

// length decodes a uvarint of at most limit at b[at:] and returns the offset behind it.
func length(b []byte, at, limit int) (v, next int, ok bool) {
	if at < len(b) && b[at] < 0x80 {
		return int(b[at]), at + 1, true
	}
	u, n := binary.Uvarint(b[min(at, len(b)):])
	if n <= 0 || u > uint64(limit) {
		return 0, 0, false
	}
	return int(u), at + n, true
}
