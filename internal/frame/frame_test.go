package frame

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

var testFile = base.ID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

func encode(id Identity, off int64, h Header, payload []byte) ([]byte, Header) {
	dst := bytes.Repeat([]byte{0xEE}, PaddedBytes(len(payload)))
	copy(dst[HeaderBytes:], payload)
	h = Put(dst, id, off, len(payload), h)
	return dst, h
}

// TestGolden fixes the bytes of a frame: a change here is a change of the format.
func TestGolden(t *testing.T) {
	h := Header{Kind: KindCommit, Seq: 0x0102030405, Count: 2, Durable: 7<<32 | 64, Prev: 0xAABBCCDD}
	got, _ := encode(NewIdentity(testFile), 4096, h, []byte("payload"))
	const want = "6ee90ea7" + "30000000" + "35e41123" + "ddccbbaa" + "0504030201000000" + "4000000007000000" +
		"02000000" + "02" + "01" + "0000" + "7061796c6f6164" + "00"
	if hex.EncodeToString(got) != want {
		t.Fatalf("got  %x\nwant %s", got, want)
	}
	// The checksums, computed without the package.
	table := crc32.MakeTable(crc32.Castagnoli)
	if sum := crc32.Checksum(got[40:], table); sum != binary.LittleEndian.Uint32(got[8:]) {
		t.Errorf("payload checksum %x", sum)
	}
	covered := append(append(testFile[:], 0, 0x10, 0, 0, 0, 0, 0, 0), got[4:40]...)
	if sum := crc32.Checksum(covered, table); sum != binary.LittleEndian.Uint32(got) {
		t.Errorf("header checksum %x", sum)
	}
}

func randomHeader(r *rand.Rand) Header {
	return Header{Kind: Kind(1 + r.IntN(int(maxKind))), Seq: r.Uint64(), Count: r.Uint32(), Durable: r.Uint64(), Prev: r.Uint32()}
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	id := NewIdentity(testFile)
	for n := range 300 {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(r.Uint32())
		}
		off := int64(r.Uint32()) * Align
		b, h := encode(id, off, randomHeader(r), payload)
		if len(b)%Align != 0 || int(h.Length) != len(b) {
			t.Fatalf("length %d of %d bytes", h.Length, len(b))
		}
		got, p, ok := Decode(append(b, "behind"...), id, off)
		if !ok || !reflect.DeepEqual(got, h) || !bytes.Equal(p, payload) {
			t.Fatalf("%+v %x %v, want %+v %x", got, p, ok, h, payload)
		}
		if cap(p) != len(p) {
			t.Fatal("appending to a payload would reach its padding")
		}
		if got, ok := DecodeHeader(b[:HeaderBytes], id, off); !ok || !reflect.DeepEqual(got, h) {
			t.Fatalf("header alone: %+v %v", got, ok)
		}
	}
}

// TestEveryBitCounts: no changed bit and no lost byte passes, in the header, the
// payload, or the padding.
func TestEveryBitCounts(t *testing.T) {
	id := NewIdentity(testFile)
	b, _ := encode(id, 64, Header{Kind: KindCommit, Seq: 5, Count: 1}, []byte("some payload"))
	for bit := range len(b) * 8 {
		b[bit/8] ^= 1 << (bit % 8)
		if _, _, ok := Decode(b, id, 64); ok {
			t.Errorf("bit %d of byte %d does not matter", bit%8, bit/8)
		}
		if _, ok := DecodeHeader(b, id, 64); ok != (bit >= 8*HeaderBytes) {
			t.Errorf("header with bit %d changed: %v", bit, ok)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for n := range b {
		if _, _, ok := Decode(b[:n], id, 64); ok {
			t.Errorf("%d of %d bytes are enough", n, len(b))
		}
	}
}

// TestIdentity: a frame at another place, or in another file, is none.
func TestIdentity(t *testing.T) {
	id := NewIdentity(testFile)
	b, _ := encode(id, 64, Header{Kind: KindCommit}, nil)
	other := testFile
	other[15] ^= 1
	for _, c := range []struct {
		id  Identity
		off int64
		ok  bool
	}{{id, 64, true}, {id, 72, false}, {id, 64 + 1<<32, false}, {NewIdentity(other), 64, false}} {
		if _, _, ok := Decode(b, c.id, c.off); ok != c.ok {
			t.Errorf("%+v: %v", c, ok)
		}
	}
}

// repair gives b, taken as a frame at off, right checksums if its length allows.
func repair(b []byte, id Identity, off int64) {
	if len(b) < HeaderBytes {
		return
	}
	if n := binary.LittleEndian.Uint32(b[4:]); n >= HeaderBytes && int64(n) <= int64(len(b)) {
		binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[HeaderBytes:n], base.Castagnoli))
	}
	binary.LittleEndian.PutUint32(b, headerSum(b, id, off))
}

// TestImplausibleHeaders: right checksums do not make nonsense acceptable.
func TestImplausibleHeaders(t *testing.T) {
	id := NewIdentity(testFile)
	for name, spoil := range map[string]func(b []byte){
		"kind 0":           func(b []byte) { b[36] = 0 },
		"kind too great":   func(b []byte) { b[36] = byte(maxKind) + 1 },
		"padding of 8":     func(b []byte) { b[37] = 8 },
		"reserved byte 38": func(b []byte) { b[38] = 1 },
		"reserved byte 39": func(b []byte) { b[39] = 1 },
		"length 0":         func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 0) },
		"length 32":        func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 32) },
		"length odd":       func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 44) },
		"length too great": func(b []byte) { binary.LittleEndian.PutUint32(b[4:], MaxBytes+8) },
		"length 4 GiB":     func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 0xFFFFFFF8) },
		"more padding than payload": func(b []byte) {
			binary.LittleEndian.PutUint32(b[4:], HeaderBytes)
			b[37] = 4
		},
	} {
		b, _ := encode(id, 64, Header{Kind: KindCommit}, []byte("12345"))
		if repair(b, id, 64); !isFrame(b, id) {
			t.Fatal("repair does not repair")
		}
		spoil(b)
		repair(b, id, 64)
		if isFrame(b, id) {
			t.Errorf("%s is accepted", name)
		}
		if _, ok := DecodeHeader(b, id, 64); ok {
			t.Errorf("%s is accepted as a header", name)
		}
	}
}

func isFrame(b []byte, id Identity) bool {
	_, _, ok := Decode(b, id, 64)
	return ok
}

func FuzzFrame(f *testing.F) {
	id := NewIdentity(testFile)
	for _, n := range []int{0, 1, 8, 100} {
		b, _ := encode(id, 64, Header{Kind: KindCommit, Seq: 9, Count: 1}, make([]byte, n))
		f.Add(b, uint16(8))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		off := int64(at) * Align
		repair(b, id, off)
		h, payload, ok := Decode(b, id, off)
		if !ok {
			return
		}
		again, h2 := encode(id, off, h, payload)
		if !bytes.Equal(again[:HeaderBytes+len(payload)], b[:HeaderBytes+len(payload)]) && allZero(b[HeaderBytes+len(payload):h.Length]) {
			t.Fatalf("%x decodes, but encodes as %x", b[:h.Length], again)
		}
		if h2.Length != h.Length || h2.Pad != h.Pad && len(payload)%Align == int(h.Pad) {
			t.Fatalf("%+v became %+v", h, h2)
		}
		w := Walker{ID: id, Buf: append(make([]byte, off), b...), Off: off, Sum: h.Prev}
		if _, p, ok := w.Next(); !ok || !bytes.Equal(p, payload) {
			t.Fatal("Walker disagrees with Decode")
		}
		w.Next()
		w.Tail()
	})
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// chain lays out frames one behind the other from offset off on.
func chain(id Identity, off int64, payloads ...string) []byte {
	buf := make([]byte, off)
	prev := uint32(0)
	for i, p := range payloads {
		b, h := encode(id, int64(len(buf)), Header{Kind: KindCommit, Seq: uint64(i), Prev: prev, Durable: uint64(100 * i)}, []byte(p))
		buf, prev = append(buf, b...), h.Sum
	}
	return buf
}

func walk(w *Walker) (payloads []string) {
	for {
		_, p, ok := w.Next()
		if !ok {
			return payloads
		}
		payloads = append(payloads, string(p))
	}
}

func TestWalker(t *testing.T) {
	id := NewIdentity(testFile)
	buf := chain(id, 64, "a", "bb", "", "dddddddddd")
	w := &Walker{ID: id, Buf: buf, Off: 64}
	if got := walk(w); !reflect.DeepEqual(got, []string{"a", "bb", "", "dddddddddd"}) || w.Off != int64(len(buf)) {
		t.Fatalf("%q, ends at %d of %d", got, w.Off, len(buf))
	}
	if tail := w.Tail(); tail != (Tail{}) {
		t.Errorf("%+v behind the end", tail)
	}
	w = &Walker{ID: id, Buf: append(buf, make([]byte, 1000)...), Off: 64}
	if got := walk(w); len(got) != 4 || w.Tail() != (Tail{}) {
		t.Errorf("zeros behind the chain: %q, %+v", got, w.Tail())
	}
	w = &Walker{ID: id, Buf: buf, Off: int64(len(buf)) + 8}
	if _, _, ok := w.Next(); ok || w.Tail() != (Tail{}) {
		t.Error("a frame beyond the buffer")
	}
}

// TestWalkerStopsAtABrokenLink: a frame that is intact but does not follow the one
// before is not part of the chain.
func TestWalkerStopsAtABrokenLink(t *testing.T) {
	id := NewIdentity(testFile)
	buf := chain(id, 64, "a", "b", "c")
	other := chain(id, 64, "a", "x", "c") // its third frame stands at the same place
	copy(buf[len(buf)-48:], other[len(other)-48:])
	w := &Walker{ID: id, Buf: buf, Off: 64}
	if got := walk(w); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Fatalf("%q", got)
	}
}

// TestTail: behind a hole it finds intact headers and the greatest mark they carry,
// even where the payload is lost.
func TestTail(t *testing.T) {
	id := NewIdentity(testFile)
	buf := chain(id, 64, "a", "b", "c", "d")
	clear(buf[64+48 : 64+60]) // a hole in the second frame
	buf[len(buf)-5] ^= 0xFF   // the payload of the last
	buf = append(buf, make([]byte, 77)...)
	w := &Walker{ID: id, Buf: buf, Off: 64}
	if got := walk(w); len(got) != 1 {
		t.Fatalf("%q", got)
	}
	end := int64(bytes.LastIndexFunc(buf, func(r rune) bool { return r != 0 })) + 1
	if tail := w.Tail(); tail.Headers != 2 || tail.Durable != 300 || tail.Bytes < 48*3-12-8 || w.Off+tail.Bytes > end+4 {
		t.Errorf("%+v", tail)
	}
}
