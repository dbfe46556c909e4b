package layout

import (
	"encoding/binary"
	"math"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// Sizes of a file.
const (
	FooterBytes  = 80
	MinFileBytes = base.FileHeaderBytes + FooterBytes
	MaxBlocks    = math.MaxInt32

	minBlockBytes = block.OverheadBytes + 8 // less than any block takes on disk
)

const footerMagic = "cairnEND"

// Footer says how the file is divided. The parts stand in the order of the
// fields, one directly behind the other, from the header to the footer.
type Footer struct {
	BlocksBytes, TombBytes, IndexBytes, PropBytes int64

	Blocks, Rows, Tombs uint64 // how many there are
}

// TombOff is where range tombstones begin.
func (f *Footer) TombOff() int64 { return base.FileHeaderBytes + f.BlocksBytes }

// IndexOff is where the index of blocks begins.
func (f *Footer) IndexOff() int64 { return f.TombOff() + f.TombBytes }

// PropOff is where properties begin.
func (f *Footer) PropOff() int64 { return f.IndexOff() + f.IndexBytes }

// End is the offset behind all parts, where the footer stands.
func (f *Footer) End() int64 { return f.PropOff() + f.PropBytes }

// AppendFooter appends the footer that will stand at off to dst.
func AppendFooter(dst []byte, f Footer, id block.Identity, off int64) []byte {
	start, le := len(dst), binary.LittleEndian
	for _, n := range []int64{f.BlocksBytes, f.TombBytes, f.IndexBytes, f.PropBytes} {
		dst = le.AppendUint64(dst, uint64(n))
	}
	for _, n := range []uint64{f.Blocks, f.Rows, f.Tombs, uint64(block.PageProperties)} {
		dst = le.AppendUint64(dst, n)
	}
	dst = append(dst, 0, 0, 0, 0)
	sum := id.Sum(off, append(dst[start:], footerMagic...))
	return append(le.AppendUint32(dst, sum), footerMagic...)
}

// DecodeFooter reads the footer b, which stands at off, where all else must end.
func DecodeFooter(b []byte, id block.Identity, off int64) (Footer, error) {
	le, name := binary.LittleEndian, id.Name()
	if string(b[72:FooterBytes]) != footerMagic {
		return Footer{}, base.Corruptf(name, off, "footer magic is %q, want %q", b[72:FooterBytes], footerMagic)
	}
	if got, want := id.Sum(off, append(b[:68:68], footerMagic...)), le.Uint32(b[68:]); got != want {
		return Footer{}, base.Corruptf(name, off, "footer checksum is %08x, computed %08x", want, got)
	}
	left := uint64(off) - base.FileHeaderBytes
	var parts [4]int64
	for i := range parts {
		n := le.Uint64(b[8*i:])
		if n > left {
			return Footer{}, base.Corruptf(name, off, "parts of the file are larger than it")
		}
		parts[i], left = int64(n), left-n
	}
	f := Footer{parts[0], parts[1], parts[2], parts[3], le.Uint64(b[32:]), le.Uint64(b[40:]), le.Uint64(b[48:])}
	if left != 0 || le.Uint64(b[56:]) != uint64(block.PageProperties) || le.Uint32(b[64:]) != 0 {
		return Footer{}, base.Corruptf(name, off, "footer is invalid")
	}
	if f.Blocks > uint64(f.BlocksBytes)/minBlockBytes || f.Blocks > MaxBlocks || f.Tombs > uint64(f.TombBytes) {
		return Footer{}, base.Corruptf(name, off, "footer counts %d blocks, %d tombstones: more than there is room for", f.Blocks, f.Tombs)
	}
	if f.Blocks > f.Rows || (f.Blocks == 0) != (f.Rows == 0) || f.Blocks == 0 && f.BlocksBytes+f.IndexBytes > 0 {
		return Footer{}, base.Corruptf(name, off, "footer counts %d rows in %d blocks of %d bytes", f.Rows, f.Blocks, f.BlocksBytes)
	}
	return f, nil
}
