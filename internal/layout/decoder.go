package layout

import "encoding/binary"

// decoder cuts fields off the front of b. After the first that does not fit
// bad is set and every field is zero.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.b, d.bad = nil, true }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// size returns an integer that must be from low to high.
func (d *decoder) size(low, high int) int {
	v := d.uvarint()
	if v < uint64(low) || v > uint64(high) {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}
