package manifest

import (
	"encoding/binary"

	"github.com/cairndb/cairn/internal/base"
)

// decoder takes values off the front of b. After the first malformed one err is
// set and every further value is zero; nothing is ever taken beyond b.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = badEdit(format, args...)
	}
	d.b = nil
}

// uvarint takes a number in its shortest encoding, at most limit.
func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > limit || n > 1 && d.b[n-1] == 0 {
		d.fail("malformed number")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// positive takes a number that is not zero.
func (d *decoder) positive(limit uint64) uint64 {
	v := d.uvarint(limit)
	if v == 0 {
		d.fail("number is zero")
	}
	return v
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail("%d bytes wanted, %d are left", n, len(d.b))
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if v := d.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) level() int {
	v := d.byte()
	if v >= NumLevels {
		d.fail("level %d", v)
	}
	return int(v)
}

func (d *decoder) id() (id base.ID) {
	copy(id[:], d.bytes(uint64(len(id))))
	return id
}

// end reports what went wrong, left-over bytes included.
func (d *decoder) end(tag uint64) error {
	if len(d.b) > 0 {
		d.fail("%d bytes too many in field %d", len(d.b), tag)
	}
	return d.err
}
