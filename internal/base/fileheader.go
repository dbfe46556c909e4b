package base

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Castagnoli is the CRC-32C table (RFC 3720) of every checksum in a store.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SumOffset continues a CRC-32C over the 8 bytes, little endian, of a file offset. It
// is written out because slices given to crc32.Update escape to the heap.
func SumOffset(sum uint32, off int64) uint32 {
	sum = ^sum
	for i := 0; i < 64; i += 8 {
		sum = Castagnoli[byte(sum)^byte(off>>i)] ^ sum>>8
	}
	return ^sum
}

// ID is a random identity: of a store, and of each file at each use of it.
type ID [16]byte

// NewID returns a fresh random identity.
func NewID() (id ID) {
	rand.Read(id[:])
	return id
}

// FileHeaderBytes is the size of the header every log, table and manifest begins with.
const FileHeaderBytes = 64

const (
	// FormatVersion is the version of the files this build writes, but for long log segments. It
	// refuses a greater one.
	FormatVersion = 1
	// LongLogVersion is that of a log segment of more than frame.MaxShortBytes, and the greatest of a log:
	// who knows version 1 only would take a longer frame for damage.
	LongLogVersion = 2
)

// newest returns the greatest version of a file that this build reads.
func newest(t FileType) uint32 {
	if t == FileLog {
		return LongLogVersion
	}
	return FormatVersion
}

// FileHeader identifies a file: what it is, in which format, of which store,
// and that it is this file and not a copy of another. All integers are little endian.
//
//	offset  bytes  field
//	     0      8  magic: "cairnLOG", "cairnSST" or "cairnMAN"
//	     8      4  format version
//	    12      4  CRC-32C of the other 60 bytes
//	    16     16  file id
//	    32     16  store id
//	    48      8  file number
//	    56      1  1: of a log segment whose file was used before
//	    57      1  1: of a log segment that may have been used before any of it was synced
//	    58      6  zero (later versions may use it)
type FileHeader struct {
	Type    FileType
	Version uint32
	File    ID
	Store   ID
	Num     uint64
	Reused  bool

	Provisional bool
}

func magic(t FileType) string {
	switch t {
	case FileLog:
		return "cairnLOG"
	case FileTable:
		return "cairnSST"
	case FileManifest:
		return "cairnMAN"
	}
	panic("base: file type without a header")
}

// MayBeOurs reports whether a file whose first bytes are b, and whose name is one of
// a store's, may be a store's: what is there of the magic is right, or zero because
// a crash came before it was written. Anything else is left alone.
func MayBeOurs(t FileType, b []byte) bool {
	want := ""
	switch t {
	case FileLog, FileTable, FileManifest:
		want = magic(t)
	case FileTemp: // becomes CURRENT
		want = "cairn "
	case FileReserve: // nobody writes to it
		want = "\x00\x00\x00\x00\x00\x00\x00\x00"
	}
	for i := range min(len(b), len(want)) {
		if b[i] != want[i] && b[i] != 0 {
			return false
		}
	}
	return true
}

// HeadBytes is how much of a file OfAnotherStore looks at.
const HeadBytes = 2 * FileHeaderBytes

// OfAnotherStore reports whether a file of type t that begins with b, HeadBytes if it has as many, is another store's: its header
// is intact, and says so. Of manifests, and log segments that have no frame, it says nothing: an Open that was interrupted may have
// left them, of a store that never was.
func OfAnotherStore(t FileType, b []byte, store ID) bool {
	switch {
	case len(b) < FileHeaderBytes || t != FileLog && t != FileTable:
		return false
	case t == FileLog && len(bytes.TrimLeft(b[FileHeaderBytes:], "\x00")) == 0:
		return false
	}
	h, err := DecodeFileHeader(b, t, "")
	return (err == nil || errors.Is(err, ErrFormatTooNew)) && h.Store != store
}

const (
	reusedAt      = 56
	provisionalAt = 57
)

func headerCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], Castagnoli), Castagnoli, b[16:FileHeaderBytes])
}

// AppendFileHeader appends the encoded header.
func AppendFileHeader(dst []byte, h FileHeader) []byte {
	start := len(dst)
	dst = append(dst, magic(h.Type)...)
	dst = binary.LittleEndian.AppendUint32(dst, h.Version)
	dst = append(dst, 0, 0, 0, 0)
	dst = append(dst, h.File[:]...)
	dst = append(dst, h.Store[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.Num)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	b := dst[start:]
	if h.Reused {
		b[reusedAt] = 1
	}
	if h.Provisional {
		b[provisionalAt] = 1
	}
	binary.LittleEndian.PutUint32(b[12:], headerCRC(b))
	return dst
}

// DecodeFileHeader reads the header of a file that ought to be of type t. The
// name is used in errors only.
func DecodeFileHeader(b []byte, t FileType, name string) (FileHeader, error) {
	if len(b) < FileHeaderBytes {
		return FileHeader{}, Corruptf(name, 0, "file of %d bytes is shorter than its header", len(b))
	}
	b = b[:FileHeaderBytes]
	if string(b[:8]) != magic(t) {
		return FileHeader{}, Corruptf(name, 0, "magic is %q, want %q", b[:8], magic(t))
	}
	if binary.LittleEndian.Uint32(b[12:]) != headerCRC(b) {
		return FileHeader{}, Corruptf(name, 12, "header checksum does not match")
	}
	h := FileHeader{Type: t, Version: binary.LittleEndian.Uint32(b[8:]), Num: binary.LittleEndian.Uint64(b[48:])}
	h.Reused, h.Provisional = b[reusedAt] == 1, b[provisionalAt] == 1
	copy(h.File[:], b[16:])
	copy(h.Store[:], b[32:])
	if h.Version > newest(t) {
		return h, fmt.Errorf("%w: %s has format version %d, this build reads up to %d", ErrFormatTooNew, name, h.Version, newest(t))
	}
	if h.Version == 0 {
		return h, Corruptf(name, 8, "format version 0")
	}
	return h, nil
}
