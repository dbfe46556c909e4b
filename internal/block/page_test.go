package block

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

func testID() Identity {
	return NewIdentity(base.ID(bytes.Repeat([]byte{0x46}, 16)), "test.sst")
}

func corpus(n int) []byte {
	words := []string{"stone ", "cairn ", "path ", "ridge ", "fog ", "north "}
	r, b := rand.New(rand.NewPCG(1, 2)), []byte(nil)
	for len(b) < n {
		b = append(b, words[r.IntN(len(words))]...)
	}
	return b[:n]
}

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func TestPageGolden(t *testing.T) {
	got := testID().AppendPage(nil, PageValues, 64, Zstd, []byte("onetwo"))
	want := "00" + "02" + "060000" + "060000" + hex.EncodeToString([]byte("onetwo")) + "041553ae"
	if hex.EncodeToString(got) != want {
		t.Fatalf("page is %x, want %s", got, want)
	}
}

func TestPageRoundTrip(t *testing.T) {
	id := testID()
	for _, c := range []Codec{None, S2, Zstd} {
		for _, n := range []int{1, 2, 15, 100, 1000, 65536, 200000, MaxPageBytes} {
			for name, raw := range map[string][]byte{"text": corpus(n), "noise": noise(n), "zero": make([]byte, n)} {
				b := id.AppendPage([]byte("before"), PageKeys, 1<<40, c, raw)[6:]
				p, err := id.ParsePage(b, PageKeys, 1<<40)
				if err != nil {
					t.Fatal(c, n, name, err)
				}
				if got := make([]byte, p.RawBytes); p.Decompress(got) != nil || !bytes.Equal(got, raw) {
					t.Fatalf("%v %s of %d bytes came back different", c, name, n)
				}
				if got, err := p.Raw(nil); err != nil || !bytes.Equal(got, raw) {
					t.Fatalf("%v %s of %d bytes: Raw differs, error %v", c, name, n, err)
				}
				if len(b) > n+OverheadBytes || name == "noise" && p.Codec != None {
					t.Fatalf("%v %s of %d bytes takes %d with codec %v", c, name, n, len(b), p.Codec)
				}
			}
		}
	}
}

func TestPageIsStoredRawUnlessItShrinksBy12Percent(t *testing.T) {
	id := testID()
	for _, c := range []Codec{S2, Zstd} {
		raw := append(noise(9000), make([]byte, 1000)...) // shrinks by about 10 %
		p, err := id.ParsePage(id.AppendPage(nil, PageValues, 0, c, raw), PageValues, 0)
		if err != nil || p.Codec != None {
			t.Fatalf("10 %%: codec %v, error %v", p.Codec, err)
		}
		raw = append(noise(8000), make([]byte, 2000)...)
		p, err = id.ParsePage(id.AppendPage(nil, PageValues, 0, c, raw), PageValues, 0)
		if err != nil || p.Codec != c {
			t.Fatalf("20 %%: codec %v, error %v", p.Codec, err)
		}
	}
}

// The checksum is all that stands between these and a wrong answer.
func TestPageIdentity(t *testing.T) {
	id := testID()
	b := id.AppendPage(nil, PageValues, 64, None, []byte("value"))
	other := NewIdentity(base.ID{1}, "other.sst")
	if _, err := id.ParsePage(b, PageValues, 64); err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func() error{
		"another file":   func() error { _, err := other.ParsePage(b, PageValues, 64); return err },
		"another offset": func() error { _, err := id.ParsePage(b, PageValues, 64+1<<32); return err },
		"another type":   func() error { _, err := id.ParsePage(b, PageKeys, 64); return err },
	} {
		var c *base.CorruptionError
		if err := try(); !errors.As(err, &c) || c.File == "" || c.Offset < 64 {
			t.Errorf("%s: error %v", what, err)
		}
	}
	relabelled := bytes.Clone(b)
	relabelled[1] = byte(PageKeys)
	if _, err := id.ParsePage(relabelled, PageKeys, 64); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("changed type byte: error %v", err)
	}
}

func TestPageEveryBitFlipAndTruncation(t *testing.T) {
	id := testID()
	b := id.AppendPage(nil, PageValues, 64, S2, corpus(500))
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		if _, err := id.ParsePage(b, PageValues, 64); !errors.Is(err, base.ErrCorrupt) {
			t.Fatalf("bit %d flipped: error %v", i, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
	for n := range b {
		if _, err := id.ParsePage(b[:n], PageValues, 64); !errors.Is(err, base.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: error %v", n, err)
		}
	}
}

func TestDecompressRefusesOtherLengths(t *testing.T) {
	id := testID()
	for _, c := range []Codec{S2, Zstd} {
		b := id.AppendPage(nil, PageValues, 0, c, corpus(5000))
		for _, raw := range []int{4000, 4999, 5001, 6000, MaxPageBytes} {
			putUint24(b[2:], raw)
			reseal(id, b, 0)
			p, err := id.ParsePage(b, PageValues, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Decompress(make([]byte, p.RawBytes)); !errors.Is(err, base.ErrCorrupt) {
				t.Errorf("%v page of 5000 bytes saying %d: error %v", c, raw, err)
			}
		}
	}
}

func TestOffsetSumIsCRC(t *testing.T) {
	id := testID()
	off := binary.LittleEndian.AppendUint64(nil, 0x1122334455667788)
	if got, want := id.Sum(0x1122334455667788, []byte("x")), (Identity{seed: id.seed}).sumOf(append(off, 'x')); got != want {
		t.Fatalf("%08x, want %08x", got, want)
	}
}

func reseal(id Identity, b []byte, off int64) {
	body := b[:len(b)-sumBytes]
	binary.LittleEndian.PutUint32(b[len(body):], id.Sum(off, body))
}

func BenchmarkDecompress(b *testing.B) {
	id := testID()
	raw := corpus(64 << 10)
	for _, size := range []int{1 << 10, 8 << 10, 64 << 10} {
		for _, c := range []Codec{S2, Zstd} {
			p, err := id.ParsePage(id.AppendPage(nil, PageValues, 64, c, raw[:size]), PageValues, 64)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", c, size), func(b *testing.B) {
				dst := make([]byte, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					if err := p.Decompress(dst); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func FuzzPage(f *testing.F) {
	id := testID()
	for _, c := range []Codec{None, S2, Zstd} {
		f.Add(id.AppendPage(nil, PageValues, 64, c, corpus(300)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < OverheadBytes {
			return
		}
		putUint24(b[5:], len(b)-OverheadBytes)
		reseal(id, b, 64)
		p, err := id.ParsePage(b, PageValues, 64)
		if err != nil {
			return
		}
		guard := bytes.Repeat([]byte{0xA5}, p.RawBytes+64)
		err = p.Decompress(guard[:p.RawBytes])
		if err != nil && !errors.Is(err, base.ErrCorrupt) {
			t.Fatal(err)
		}
		if !bytes.Equal(guard[p.RawBytes:], bytes.Repeat([]byte{0xA5}, 64)) {
			t.Fatal("decompression wrote behind its destination")
		}
	})
}
