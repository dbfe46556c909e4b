package frame

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/cairndb/cairn/internal/base"
)

const (
	// HeaderBytes is the size of a frame's header.
	HeaderBytes = 40
	// MaxBytes is the greatest length of a whole frame.
	MaxBytes = 256 << 20
	// MaxShortBytes is that of a frame in a manifest, or in a log of format version 1.
	MaxShortBytes = 16 << 20
	// Align is what every frame's length and offset are a multiple of.
	Align = 8
)

// Kind says what a frame's payload is.
type Kind uint8

const (
	// KindLink opens a log segment: it fixes where the segment before it ends.
	KindLink Kind = 1
	// KindCommit holds the entries of one commit.
	KindCommit Kind = 2
	// KindIngest publishes tables a large transaction wrote before it committed.
	KindIngest Kind = 3
	// KindEdit holds one edit of the manifest, or a part of one.
	KindEdit Kind = 4
	// KindSeal ends a file: nothing follows it.
	KindSeal Kind = 5
	// KindMark has no payload; it only carries a durable mark.
	KindMark Kind = 6
	// KindEnd stands behind the last frame of a log segment whose file was used before, and
	// has no payload. The next frame takes its place; it is not in the chain.
	KindEnd Kind = 7

	maxKind = KindEnd
)

// Identity is a file's random id, folded into the checksum of its every frame.
type Identity struct{ seed uint32 }

// NewIdentity prepares the identity of the file with the given id.
func NewIdentity(file base.ID) Identity {
	return Identity{crc32.Checksum(file[:], base.Castagnoli)}
}

// Header is a frame's header. Put computes Length, Pad, Payload and Sum.
type Header struct {
	Sum     uint32 // CRC-32C of identity, offset and the fields below
	Length  uint32 // whole frame, a multiple of Align
	Payload uint32 // CRC-32C of payload and padding
	Prev    uint32 // Sum of the frame before; 0 for the first of a chain
	Seq     uint64 // first sequence of a commit
	Durable uint64 // position known durable when the frame was written
	Count   uint32 // number of sequences the frame uses
	Kind    Kind
	Pad     uint8 // zero bytes after the payload
}

// Beyond reports whether the frame uses a sequence behind the last one there is.
func (h *Header) Beyond() bool {
	return h.Seq > base.MaxSeq || uint64(h.Count) > base.MaxSeq-h.Seq+1
}

// PaddedBytes returns the length of a frame with a payload of n bytes.
func PaddedBytes(n int) int { return (HeaderBytes + n + Align - 1) &^ (Align - 1) }

// Put completes a frame in place. dst is the whole frame: PaddedBytes(payload)
// long, with the payload already at dst[HeaderBytes:]. off is its offset in the file.
func Put(dst []byte, id Identity, off int64, payload int, h Header) Header {
	return PutSummed(dst, id, off, payload, crc32.Checksum(dst[HeaderBytes:HeaderBytes+payload], base.Castagnoli), h)
}

// PutSummed is Put where the CRC-32C of the payload is known: dst is not read.
func PutSummed(dst []byte, id Identity, off int64, payload int, sum uint32, h Header) Header {
	h.Length = uint32(len(dst))
	h.Pad = uint8(len(dst) - HeaderBytes - payload)
	padding := dst[HeaderBytes+payload:]
	clear(padding)
	h.Payload = crc32.Update(sum, base.Castagnoli, padding)
	le := binary.LittleEndian
	le.PutUint32(dst[4:], h.Length)
	le.PutUint32(dst[8:], h.Payload)
	le.PutUint32(dst[12:], h.Prev)
	le.PutUint64(dst[16:], h.Seq)
	le.PutUint64(dst[24:], h.Durable)
	le.PutUint32(dst[32:], h.Count)
	dst[36], dst[37], dst[38], dst[39] = byte(h.Kind), h.Pad, 0, 0
	h.Sum = headerSum(dst, id, off)
	le.PutUint32(dst, h.Sum)
	return h
}

// PutEnd sets dst to a frame of KindEnd at offset off of its file.
func PutEnd(dst *[HeaderBytes]byte, id Identity, off int64) {
	Put(dst[:], id, off, 0, Header{Kind: KindEnd})
}

func headerSum(b []byte, id Identity, off int64) uint32 {
	return crc32.Update(base.SumOffset(id.seed, off), base.Castagnoli, b[4:HeaderBytes])
}

// DecodeHeader decodes the header at the start of b, which stands at offset off
// of its file. It reports whether the header is intact; the payload may not be.
func DecodeHeader(b []byte, id Identity, off int64) (Header, bool) {
	if len(b) < HeaderBytes {
		return Header{}, false
	}
	le := binary.LittleEndian
	h := Header{
		Sum: le.Uint32(b), Length: le.Uint32(b[4:]), Payload: le.Uint32(b[8:]), Prev: le.Uint32(b[12:]),
		Seq: le.Uint64(b[16:]), Durable: le.Uint64(b[24:]), Count: le.Uint32(b[32:]), Kind: Kind(b[36]), Pad: b[37],
	}
	if !h.plausible() || b[38] != 0 || b[39] != 0 {
		return Header{}, false
	}
	return h, h.Sum == headerSum(b, id, off)
}

func (h *Header) plausible() bool {
	return h.Kind >= KindLink && h.Kind <= maxKind && h.Length%Align == 0 &&
		h.Length >= HeaderBytes+uint32(h.Pad) && h.Length <= MaxBytes && h.Pad < Align
}

// Decode decodes the frame at the start of b. It reports whether the whole frame
// is intact. The payload aliases b.
func Decode(b []byte, id Identity, off int64) (h Header, payload []byte, ok bool) {
	h, ok = DecodeHeader(b, id, off)
	if !ok || int(h.Length) > len(b) {
		return h, nil, false
	}
	body := b[HeaderBytes:h.Length]
	if crc32.Checksum(body, base.Castagnoli) != h.Payload {
		return h, nil, false
	}
	return h, body[: len(body)-int(h.Pad) : len(body)-int(h.Pad)], true
}
