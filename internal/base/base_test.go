package base

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFileHeaderGolden pins the bytes of a file header: they are a format.
func TestFileHeaderGolden(t *testing.T) {
	h := FileHeader{Type: FileTable, Version: 1, Num: 7}
	copy(h.File[:], "FFFFFFFFFFFFFFFF")
	copy(h.Store[:], "SSSSSSSSSSSSSSSS")
	const want = "636169726e535354" + "01000000" + "4cdc8145" +
		"46464646464646464646464646464646" + "53535353535353535353535353535353" + "0700000000000000" + "0000000000000000"
	b := AppendFileHeader(nil, h)
	if got := hex.EncodeToString(b); got != want {
		t.Fatalf("header is\n%s, want\n%s", got, want)
	}
	if got, err := DecodeFileHeader(b, FileTable, "f"); err != nil || got != h {
		t.Fatalf("decoded %+v, %v", got, err)
	}
}

// TestFileHeaderFlips flips every bit: none may go unnoticed.
func TestFileHeaderFlips(t *testing.T) {
	good := AppendFileHeader(nil, FileHeader{Type: FileLog, Version: 1, File: NewID(), Store: NewID(), Num: 1 << 40})
	for bit := range len(good) * 8 {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		if _, err := DecodeFileHeader(b, FileLog, "f"); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	}
	for n := range good {
		if _, err := DecodeFileHeader(good[:n], FileLog, "f"); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if _, err := DecodeFileHeader(good, FileTable, "f"); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a log taken for a table: %v", err)
	}
}

// TestOfAnotherStore: what an interrupted Open cannot have left says by an intact header whose it is.
func TestOfAnotherStore(t *testing.T) {
	ours, theirs := NewID(), NewID()
	for _, c := range []struct {
		t      FileType
		behind string
		want   bool
	}{{FileTable, "", true}, {FileTable, "a block", true}, {FileLog, "", false}, {FileLog, "\x00\x00", false}, {FileLog, "\x00a link", true}, {FileManifest, "a snapshot", false}} {
		for _, version := range []uint32{1, 99} {
			b := append(AppendFileHeader(nil, FileHeader{Type: c.t, Version: version, Store: theirs}), c.behind...)
			if OfAnotherStore(c.t, b, ours) != c.want || OfAnotherStore(c.t, b, theirs) {
				t.Errorf("type %v, version %d, %q behind the header: want %v", c.t, version, c.behind, c.want)
			}
			if b[20] ^= 1; OfAnotherStore(c.t, b, ours) || OfAnotherStore(c.t, b[:60], ours) {
				t.Errorf("type %v: by a header that is damaged, or cut", c.t)
			}
		}
	}
}

func TestFileHeaderVersions(t *testing.T) {
	for typ, last := range map[FileType]uint32{FileLog: LongLogVersion, FileTable: FormatVersion, FileManifest: FormatVersion} {
		for version := uint32(1); version <= last+1; version++ {
			b := AppendFileHeader(nil, FileHeader{Type: typ, Version: version})
			h, err := DecodeFileHeader(b, typ, "f")
			if tooNew := version > last; h.Version != version || tooNew != errors.Is(err, ErrFormatTooNew) || !tooNew && err != nil {
				t.Errorf("file of type %v and version %d: %v", typ, version, err)
			}
		}
	}
	b := AppendFileHeader(nil, FileHeader{Type: FileLog, Version: 0})
	if _, err := DecodeFileHeader(b, FileLog, "f"); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("version 0: %v", err)
	}
}

func FuzzFileHeader(f *testing.F) {
	f.Add(AppendFileHeader(nil, FileHeader{Type: FileLog, Version: 1, Num: 3}), byte(FileLog))
	f.Add([]byte("cairnSST"), byte(FileTable))
	f.Fuzz(func(t *testing.T, b []byte, typ byte) {
		want := []FileType{FileLog, FileTable, FileManifest}[typ%3]
		if len(b) >= FileHeaderBytes { // repair the checksum, or nothing gets past it
			c := headerCRC(b)
			b[12], b[13], b[14], b[15] = byte(c), byte(c>>8), byte(c>>16), byte(c>>24)
		}
		h, err := DecodeFileHeader(b, want, "f")
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormatTooNew) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again := AppendFileHeader(nil, h)
		if !bytes.Equal(again[:12], b[:12]) || !bytes.Equal(again[16:56], b[16:56]) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b[:64], h, again)
		}
	})
}

func TestFileNames(t *testing.T) {
	for num, want := range map[uint64]string{0: "000000.log", 9: "000009.log", 10: "000010.log", 99999: "099999.log", 100000: "100000.log", 1234567: "1234567.log"} {
		if got := FileName(FileLog, num); got != want {
			t.Errorf("segment %d is called %s, want %s", num, got, want)
		}
	}
	for _, typ := range []FileType{FileLog, FileTable, FileManifest, FileCurrent, FileLock, FileTemp, FileReserve} {
		for _, num := range []uint64{0, 1, 999999, 1000000, 1<<64 - 1} {
			name := FileName(typ, num)
			got, n := ParseFileName(name)
			if got != typ || n != num && typ != FileCurrent && typ != FileLock && typ != FileReserve {
				t.Errorf("%q parses as %d %d, want %d %d", name, got, n, typ, num)
			}
		}
	}
	for _, name := range []string{"", "1.log", "000001.LOG", "0000001.log", "-00001.sst", "+00001.sst", "000001.sst.bak",
		"MANIFEST-1", "MANIFEST-", "../000001.sst", "000001.", ".log", "99999999999999999999.log", "LOCK ", "current"} {
		if typ, _ := ParseFileName(name); typ != FileUnknown {
			t.Errorf("%q is taken for a file of the store", name)
		}
	}
}

// TestBucketPrefixes: prefixes order by id, none is a prefix of another, and
// splitting is the inverse of joining.
func TestBucketPrefixes(t *testing.T) {
	ids := []uint64{0, 1, 2, 255, 256, 257, 65535, 65536, 1 << 24, 1<<32 - 1, 1 << 32, 1<<64 - 1}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ids = append(ids, r.Uint64()>>r.IntN(64))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var last []byte
	for i, id := range ids {
		p := AppendBucketPrefix(nil, id)
		if i > 0 && (bytes.Compare(last, p) >= 0 || bytes.HasPrefix(p, last)) {
			t.Fatalf("prefix of %d, %x, does not come after %x", id, p, last)
		}
		got, user, ok := CutBucketPrefix(append(bytes.Clone(p), "key"...))
		if !ok || got != id || string(user) != "key" {
			t.Fatalf("prefix %x splits into %d %q %v", p, got, user, ok)
		}
		last = p
	}
	for _, bad := range []string{"", "\x09", "\xff", "\x02\x01", "\x01\x00x", "\x02\x00\x01x"} {
		if _, _, ok := CutBucketPrefix([]byte(bad)); ok {
			t.Errorf("%x is taken for an internal key", bad)
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for _, c := range []struct{ prefix, end string }{{"a", "b"}, {"a\xff", "b"}, {"\x00", "\x01"}, {"ab\xfe", "ab\xff"}} {
		if got := PrefixEnd([]byte(c.prefix)); string(got) != c.end {
			t.Errorf("end of %q is %q, want %q", c.prefix, got, c.end)
		}
	}
	if PrefixEnd(nil) != nil || PrefixEnd([]byte{0xff, 0xff}) != nil {
		t.Error("an end where there is none")
	}
}

func TestVisibility(t *testing.T) {
	v := Visibility{Snapshot: 10, PrivateLimit: SeqPrivate | 2}
	for seq, want := range map[uint64]bool{0: true, 10: true, 11: false, MaxSeq: false,
		SeqPrivate: true, SeqPrivate | 1: true, SeqPrivate | 2: false} {
		if v.Sees(seq) != want {
			t.Errorf("sees %x: %v", seq, !want)
		}
	}
	if (Visibility{Snapshot: 5}).Sees(SeqPrivate) {
		t.Error("private entries are seen without a limit")
	}
}

func TestTableMetaBounds(t *testing.T) {
	m := TableMeta{Smallest: []byte("b"), Largest: []byte("d")}
	for key, in := range map[string]bool{"a": false, "b": true, "c": true, "d": true, "d\x00": false} {
		if m.Contains([]byte(key)) != in {
			t.Errorf("inclusive: contains %q: %v", key, !in)
		}
	}
	m.LargestExclusive = true
	if m.Contains([]byte("d")) || !m.Contains([]byte("czz")) || m.Overlaps([]byte("d"), nil) {
		t.Error("an exclusive bound is taken for an inclusive one")
	}
	if !m.Overlaps(nil, nil) || m.Overlaps(nil, []byte("b")) || !m.Overlaps(nil, []byte("b\x00")) {
		t.Error("overlap with open bounds")
	}
}

func TestErrorsMatch(t *testing.T) {
	var c *CorruptionError
	err := Corruptf("file", 12, "bad %s", "thing")
	if !errors.Is(err, ErrCorrupt) || !errors.As(err, &c) || c.Offset != 12 || c.File != "file" {
		t.Errorf("%v does not match", err)
	}
	if err := error(&ConflictError{Low: []byte("k")}); !errors.Is(err, ErrConflict) {
		t.Errorf("%v does not match", err)
	}
}

// TestConflictNamesItsRange: a High that is empty is no upper bound, and looked like the end of an empty range.
func TestConflictNamesItsRange(t *testing.T) {
	for want, err := range map[string]ConflictError{
		`on key "t"`:              {Low: []byte("t")},
		`on range ["t", "u")`:     {Low: []byte("t"), High: []byte("u")},
		`on range ["", "u")`:      {Low: []byte{}, High: []byte("u")},
		`on all keys from "t" on`: {Low: []byte("t"), High: []byte{}},
		`on all keys`:             {Low: []byte{}, High: []byte{}},
	} {
		if got := err.Error(); got != "cairn: transaction conflict "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
