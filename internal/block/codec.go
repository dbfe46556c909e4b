package block

import (
	"errors"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// Codec is how a page is compressed. The values are part of the table format.
type Codec uint8

const (
	// None stores bytes as they are.
	None Codec = 0
	// S2 is one block of S2, an extension of Snappy's format: fast both ways.
	S2 Codec = 1
	// Zstd is one zstd frame: small.
	Zstd Codec = 2
)

// Known reports whether c is a codec of format version 1.
func (c Codec) Known() bool { return c <= Zstd }

func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case S2:
		return "s2"
	case Zstd:
		return "zstd"
	}
	return "unknown"
}

// zstdWindow bounds the memory of an encoder; most pages are smaller.
const zstdWindow = 256 << 10

// Encoders and decoders hold hundreds of kilobytes each, so they are pooled and
// the collector may take those that nobody used for a while.
var (
	zstdEncoders = sync.Pool{New: func() any { return newZstdEncoder() }}
	zstdDecoders = sync.Pool{New: func() any { return newZstdDecoder() }}
)

func newZstdEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		panic("block: zstd encoder options: " + err.Error())
	}
	return e
}

// With zstdSlack bytes of capacity behind what a frame holds its decoder copies 16 bytes at a time, which takes a quarter less of
// the time (BenchmarkDecompress). Pages have none behind them, so those of up to zstdBlock bytes, which are one block of
// zstd, are decoded elsewhere, and copied.
const (
	zstdSlack = 16
	zstdBlock = 128 << 10
)

// zstdDecoder is a decoder, and memory with slack.
type zstdDecoder struct {
	*zstd.Decoder
	elsewhere []byte
}

// decode decompresses stored into dst.
func (d *zstdDecoder) decode(dst, stored []byte) error {
	in := dst[:0:len(dst)]
	if len(dst) <= zstdBlock {
		d.elsewhere = slices.Grow(d.elsewhere[:0], len(dst)+zstdSlack)
		in = d.elsewhere[: 0 : len(dst)+zstdSlack]
	}
	out, err := d.DecodeAll(stored, in)
	if err == nil && len(out) == len(dst) && len(out) > 0 && &out[0] != &dst[0] {
		copy(dst, out)
	}
	return checkLength(len(out), len(dst), err)
}

// newZstdDecoder returns a decoder that never writes more than the capacity of
// its destination, whatever a frame declares.
func newZstdDecoder() *zstdDecoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxPageBytes), zstd.WithDecoderMaxWindow(MaxPageBytes))
	if err != nil {
		panic("block: zstd decoder options: " + err.Error())
	}
	return &zstdDecoder{Decoder: d}
}

// compress appends raw in the form of codec c to dst; ok is false if c does
// not make it smaller than limit bytes.
func compress(dst, raw []byte, c Codec, limit int) (out []byte, ok bool) {
	start := len(dst)
	switch c {
	case S2:
		dst = slices.Grow(dst, s2.MaxEncodedLen(len(raw)))
		n := len(s2.Encode(dst[start:cap(dst)], raw))
		return dst[:start+n], n < limit
	case Zstd:
		e := zstdEncoders.Get().(*zstd.Encoder)
		dst = e.EncodeAll(raw, dst)
		zstdEncoders.Put(e)
		return dst, len(dst)-start < limit
	}
	return dst, false
}

var (
	errCodec  = errors.New("unknown codec")
	errLength = errors.New("decompresses to another length than declared")
)

// decompress is the inverse of compress; dst has the declared raw length.
func decompress(dst, stored []byte, c Codec) error {
	switch c {
	case None:
		if copy(dst, stored) != len(dst) || len(stored) != len(dst) {
			return errLength
		}
		return nil
	case S2:
		if n, err := s2.DecodedLen(stored); err != nil || n != len(dst) {
			return checkLength(n, len(dst), err)
		}
		out, err := s2.Decode(dst, stored)
		return checkLength(len(out), len(dst), err)
	case Zstd:
		d := zstdDecoders.Get().(*zstdDecoder)
		defer zstdDecoders.Put(d)
		return d.decode(dst, stored)
	}
	return errCodec
}

func checkLength(got, want int, err error) error {
	if err == nil && got != want {
		return errLength
	}
	return err
}
