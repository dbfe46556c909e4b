package data

import (
	"fmt"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// blockBytes is what Cairn compresses at a time.
const blockBytes = 64 << 10

// BenchmarkCodecs is what the choice of codecs rests on: speed, and bytes out per byte
// in, over blocks of values.
func BenchmarkCodecs(b *testing.B) {
	source := NewSource(1)
	for _, c := range []struct {
		name   string
		encode func(dst, src []byte) []byte
	}{
		{"zstd-default", zstdEncoder(b, zstd.SpeedDefault)},
		{"zstd-fastest", zstdEncoder(b, zstd.SpeedFastest)},
		{"s2", func(dst, src []byte) []byte { return s2.Encode(dst[:cap(dst)], src) }},
		{"lz4", lz4Encoder()},
	} {
		for _, size := range []int{100, 1480, 4096} {
			b.Run(fmt.Sprint(c.name, "/", size), func(b *testing.B) {
				blocks := blocksOf(source, size, 64)
				dst := make([]byte, 0, 2*blockBytes)
				in, out := 0, 0
				b.SetBytes(blockBytes)
				b.ResetTimer()
				for i := range b.N {
					block := blocks[i%len(blocks)]
					in += len(block)
					out += len(c.encode(dst[:0], block))
				}
				b.ReportMetric(float64(out)/float64(in), "out/in")
			})
		}
	}
}

func zstdEncoder(b *testing.B, level zstd.EncoderLevel) func(dst, src []byte) []byte {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(level))
	if err != nil {
		b.Fatal(err)
	}
	return func(dst, src []byte) []byte { return e.EncodeAll(src, dst) }
}

func lz4Encoder() func(dst, src []byte) []byte {
	var c lz4.Compressor
	return func(dst, src []byte) []byte {
		n, err := c.CompressBlock(src, dst[:cap(dst)])
		if err != nil {
			panic(err)
		}
		return dst[:n]
	}
}

// blocksOf fills n blocks with values, one behind the other.
func blocksOf(s *Source, size, n int) [][]byte {
	blocks := make([][]byte, n)
	id := uint64(0)
	for i := range blocks {
		for ; len(blocks[i]) < blockBytes; id++ {
			blocks[i] = append(blocks[i], s.Value(id, 0, size)...)
		}
		blocks[i] = blocks[i][:blockBytes]
	}
	return blocks
}
