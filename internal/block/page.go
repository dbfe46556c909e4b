package block

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cairndb/cairn/internal/base"
)

// PageType is what a page is for. The values are part of the table format.
type PageType uint8

const (
	PageKeys       PageType = 1 // the keys of a block
	PageValues     PageType = 2 // values of a block
	PageTombstones PageType = 3 // range tombstones
	PageIndex      PageType = 4 // fences and sizes of blocks
	PageProperties PageType = 5 // counts and bounds of the table
)

const (
	// MaxPageBytes bounds a page's raw length and the memory form of a key page.
	MaxPageBytes = 1 << 20
	// HeaderBytes is the size of the fields before a page's payload.
	HeaderBytes = 8
	// OverheadBytes is what a page takes on disk beyond its stored payload.
	OverheadBytes = HeaderBytes + sumBytes
	// MaxStoredBytes bounds the size of a page on disk.
	MaxStoredBytes = MaxPageBytes + OverheadBytes

	sumBytes = 4
)

// Identity is a file's share in the checksums of its pages.
type Identity struct {
	name string // for errors
	seed uint32 // checksum of the file's id
}

// NewIdentity returns the identity of the file with the given id; name is what
// errors call it.
func NewIdentity(file base.ID, name string) Identity {
	return Identity{name: name, seed: crc32.Checksum(file[:], base.Castagnoli)}
}

// Name returns what errors call the file.
func (id Identity) Name() string { return id.name }

// Sum returns the CRC-32C of the file's id, a file offset, and b.
func (id Identity) Sum(off int64, b []byte) uint32 {
	return crc32.Update(base.SumOffset(id.seed, off), base.Castagnoli, b)
}

// storeRawAbove is the payload size from which compressing raw bytes does not
// save the 12 % that make decompressing worth its while.
func storeRawAbove(raw int) int { return raw - raw*12/100 }

// AppendPage appends a page of the given type holding raw, which must be 1 to
// MaxPageBytes long, to dst. off is where in the file the page will stand.
func (id Identity) AppendPage(dst []byte, t PageType, off int64, c Codec, raw []byte) []byte {
	start := len(dst)
	return id.AppendSum(AppendBody(dst, t, c, raw), start, off)
}

// AppendBody is AppendPage without the checksum, the only part of a page that depends
// on where it stands: AppendSum adds it.
func AppendBody(dst []byte, t PageType, c Codec, raw []byte) []byte {
	if len(raw) == 0 || len(raw) > MaxPageBytes {
		panic("block: page length out of bounds")
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	out, ok := compress(dst, raw, c, storeRawAbove(len(raw)))
	if !ok {
		c, out = None, append(out[:start+HeaderBytes], raw...)
	}
	p := out[start:]
	p[0], p[1] = byte(c), byte(t)
	putUint24(p[2:], len(raw))
	putUint24(p[5:], len(p)-HeaderBytes)
	return out
}

// AppendSum completes the page whose body is dst[start:] and will stand at off.
func (id Identity) AppendSum(dst []byte, start int, off int64) []byte {
	return binary.LittleEndian.AppendUint32(dst, id.Sum(off, dst[start:]))
}

// Page is a page whose checksum was verified. It aliases the bytes it came from.
type Page struct {
	Codec    Codec
	RawBytes int // length once decompressed, 1 to MaxPageBytes
	payload  []byte
	name     string
	off      int64
}

// SizeFromHeader returns how many bytes on disk the page beginning with b says
// it takes; b is at least HeaderBytes long and not verified.
func SizeFromHeader(b []byte) int { return OverheadBytes + uint24(b[5:]) }

// ParsePage verifies that b is exactly the page of type t at offset off.
func (id Identity) ParsePage(b []byte, t PageType, off int64) (Page, error) {
	if len(b) < OverheadBytes || SizeFromHeader(b) != len(b) {
		return Page{}, base.Corruptf(id.name, off, "page of %d bytes does not have the length it says", len(b))
	}
	body := b[:len(b)-sumBytes]
	if got, want := id.Sum(off, body), binary.LittleEndian.Uint32(b[len(body):]); got != want {
		return Page{}, base.Corruptf(id.name, off, "page checksum is %08x, computed %08x", want, got)
	}
	p := Page{Codec: Codec(b[0]), RawBytes: uint24(b[2:]), payload: body[HeaderBytes:], name: id.name, off: off}
	if PageType(b[1]) != t {
		return Page{}, base.Corruptf(id.name, off, "page has type %d, want %d", b[1], t)
	}
	if !p.Codec.Known() || p.RawBytes == 0 || p.RawBytes > MaxPageBytes || len(p.payload) > p.RawBytes {
		return Page{}, base.Corruptf(id.name, off, "page header is invalid: codec %d, %d bytes stored as %d", b[0], p.RawBytes, len(p.payload))
	}
	return p, nil
}

// Decompress writes the page's raw bytes to dst, which must be RawBytes long.
func (p *Page) Decompress(dst []byte) error {
	if err := decompress(dst, p.payload, p.Codec); err != nil {
		return base.Corruptf(p.name, p.off, "%s page does not decompress: %v", p.Codec, err)
	}
	return nil
}

// Raw returns the page's raw bytes: of a compressed page in buf, grown if it is
// too small, of another the payload itself.
func (p *Page) Raw(buf []byte) ([]byte, error) {
	if p.Codec == None && len(p.payload) == p.RawBytes {
		return p.payload, nil
	}
	if cap(buf) < p.RawBytes {
		buf = make([]byte, p.RawBytes)
	}
	buf = buf[:p.RawBytes]
	return buf, p.Decompress(buf)
}

func putUint24(b []byte, v int) { b[0], b[1], b[2] = byte(v), byte(v>>8), byte(v>>16) }

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
