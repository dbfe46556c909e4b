package base

import (
	"path/filepath"
	"strconv"
	"strings"
)

// FileType is the role of a file in a store's directory.
type FileType uint8

const (
	FileUnknown  FileType = iota // a name FileName does not make
	FileLog                      // 000012.log: a log segment
	FileTable                    // 000012.sst: a table
	FileManifest                 // MANIFEST-000012: a log of edits
	FileCurrent                  // CURRENT: names the live manifest
	FileLock                     // LOCK: held by the process that has the store open
	FileTemp                     // 000012.tmp: a file being made; removed at Open
	FileReserve                  // RESERVE: space kept back for deletes and compaction on a full disk
)

// FilePath returns the path of the file of the given type and number in a store's directory.
func FilePath(dir string, t FileType, num uint64) string { return filepath.Join(dir, FileName(t, num)) }

// FileName returns the name of the file of the given type and number.
func FileName(t FileType, num uint64) string {
	switch t {
	case FileLog:
		return numbered("", num, ".log")
	case FileTable:
		return numbered("", num, ".sst")
	case FileManifest:
		return numbered("MANIFEST-", num, "")
	case FileCurrent:
		return "CURRENT"
	case FileLock:
		return "LOCK"
	case FileTemp:
		return numbered("", num, ".tmp")
	case FileReserve:
		return "RESERVE"
	}
	panic("base: file type without a name")
}

// numbered returns a name with num in at least six digits. Every Open makes a few dozen
// of them, so it does without package fmt.
func numbered(before string, num uint64, after string) string {
	var room [40]byte
	b := append(room[:0], before...)
	for least := uint64(100_000); least > max(num, 1); least /= 10 {
		b = append(b, '0')
	}
	return string(append(strconv.AppendUint(b, num, 10), after...))
}

// ParseFileName is the inverse of FileName; a name that FileName cannot have
// made is FileUnknown.
func ParseFileName(name string) (FileType, uint64) {
	for _, t := range []FileType{FileCurrent, FileLock, FileReserve} {
		if name == FileName(t, 0) {
			return t, 0
		}
	}
	t, digits := FileUnknown, ""
	if rest, ok := strings.CutPrefix(name, "MANIFEST-"); ok {
		t, digits = FileManifest, rest
	} else if rest, ext, ok := strings.Cut(name, "."); ok {
		t, digits = extensionType(ext), rest
	}
	num, err := strconv.ParseUint(digits, 10, 64)
	if t == FileUnknown || err != nil || FileName(t, num) != name {
		return FileUnknown, 0
	}
	return t, num
}

func extensionType(ext string) FileType {
	switch ext {
	case "log":
		return FileLog
	case "sst":
		return FileTable
	case "tmp":
		return FileTemp
	}
	return FileUnknown
}
