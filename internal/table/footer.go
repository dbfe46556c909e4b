package table

import (
	"encoding/binary"
	"math"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

const (
	footerBytes = 80
	footerMagic = "cairnEND"
	// minBlockBytes is less than any block takes on disk.
	minBlockBytes = block.OverheadBytes + 8
	maxBlocks     = math.MaxInt32
	minFileBytes  = base.FileHeaderBytes + footerBytes
)

// footer says how the file is divided. The parts stand in the order of the
// fields, one directly behind the other, from the header to the footer.
type footer struct {
	blocksBytes, tombBytes, indexBytes, propBytes int64

	blocks, rows, tombs uint64
}

func (f *footer) tombOff() int64  { return base.FileHeaderBytes + f.blocksBytes }
func (f *footer) indexOff() int64 { return f.tombOff() + f.tombBytes }
func (f *footer) propOff() int64  { return f.indexOff() + f.indexBytes }
func (f *footer) end() int64      { return f.propOff() + f.propBytes }

// appendFooter appends the footer that will stand at off to dst.
func appendFooter(dst []byte, f footer, id block.Identity, off int64) []byte {
	start, le := len(dst), binary.LittleEndian
	for _, n := range []int64{f.blocksBytes, f.tombBytes, f.indexBytes, f.propBytes} {
		dst = le.AppendUint64(dst, uint64(n))
	}
	for _, n := range []uint64{f.blocks, f.rows, f.tombs, uint64(block.PageProperties)} {
		dst = le.AppendUint64(dst, n)
	}
	dst = append(dst, 0, 0, 0, 0)
	sum := id.Sum(off, append(dst[start:], footerMagic...))
	return append(le.AppendUint32(dst, sum), footerMagic...)
}

// decodeFooter reads the footer b, which stands at off, where all else must end.
func decodeFooter(b []byte, id block.Identity, off int64) (footer, error) {
	le, name := binary.LittleEndian, id.Name()
	if string(b[72:footerBytes]) != footerMagic {
		return footer{}, base.Corruptf(name, off, "footer magic is %q, want %q", b[72:footerBytes], footerMagic)
	}
	if got, want := id.Sum(off, append(b[:68:68], footerMagic...)), le.Uint32(b[68:]); got != want {
		return footer{}, base.Corruptf(name, off, "footer checksum is %08x, computed %08x", want, got)
	}
	left := uint64(off) - base.FileHeaderBytes
	var parts [4]int64
	for i := range parts {
		n := le.Uint64(b[8*i:])
		if n > left {
			return footer{}, base.Corruptf(name, off, "parts of the file are larger than it")
		}
		parts[i], left = int64(n), left-n
	}
	f := footer{parts[0], parts[1], parts[2], parts[3], le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])}
	if left != 0 || le.Uint64(b[56:]) != uint64(block.PageProperties) || le.Uint32(b[64:]) != 0 {
		return footer{}, base.Corruptf(name, off, "footer is invalid")
	}
	if f.blocks > uint64(f.blocksBytes)/minBlockBytes || f.blocks > maxBlocks || f.tombs > uint64(f.tombBytes) {
		return footer{}, base.Corruptf(name, off, "footer counts %d blocks, %d tombstones: more than there is room for", f.blocks, f.tombs)
	}
	if f.blocks > f.rows || (f.blocks == 0) != (f.rows == 0) || f.blocks == 0 && f.blocksBytes+f.indexBytes > 0 {
		return footer{}, base.Corruptf(name, off, "footer counts %d rows in %d blocks of %d bytes", f.rows, f.blocks, f.blocksBytes)
	}
	return f, nil
}
