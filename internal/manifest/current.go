package manifest

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// current is the content of the file CURRENT.
type current struct {
	Manifest    uint64
	File, Store base.ID
}

// currentVersion is the version of CURRENT's one line.
const currentVersion = 1

// maxCurrentBytes bounds the line; a number of 20 digits makes 124.
const maxCurrentBytes = 256

// line returns the line.
func (c current) line() []byte {
	b := strconv.AppendInt([]byte("cairn "), currentVersion, 10)
	b = append(append(b, ' '), base.FileName(base.FileManifest, c.Manifest)...)
	b = hex.AppendEncode(append(b, ' '), c.File[:])
	b = hex.AppendEncode(append(b, ' '), c.Store[:])
	b = append(b, ' ')
	return appendSum(b, crc32.Checksum(b, base.Castagnoli))
}

// appendSum appends what ends the line, given the checksum of what stands before it.
func appendSum(dst []byte, sum uint32) []byte {
	return append(hex.AppendEncode(dst, binary.BigEndian.AppendUint32(nil, sum)), '\n')
}

// parseCurrent accepts exactly what current.line makes. name is for errors.
func parseCurrent(line []byte, name string) (c current, err error) {
	fields := strings.Split(strings.TrimSuffix(string(line), "\n"), " ")
	if len(fields) < 3 || fields[0] != "cairn" || !checksummed(line) {
		return c, base.Corruptf(name, 0, "not a line with a matching checksum")
	}
	if v, err := strconv.ParseUint(fields[1], 10, 32); err == nil && v > currentVersion {
		return c, fmt.Errorf("%w: %s has version %d, this build reads %d", base.ErrFormatTooNew, name, v, currentVersion)
	}
	if len(fields) != 6 {
		return c, base.Corruptf(name, 0, "%d fields, want 6", len(fields))
	}
	t, num := base.ParseFileName(fields[2])
	c.Manifest = num
	_, err1 := hex.Decode(c.File[:], clip(fields[3]))
	_, err2 := hex.Decode(c.Store[:], clip(fields[4]))
	if t != base.FileManifest || err1 != nil || err2 != nil || string(c.line()) != string(line) {
		return c, base.Corruptf(name, 0, "malformed line %q", line)
	}
	return c, nil
}

// clip keeps as much of a hexadecimal number as an id can hold.
func clip(s string) []byte { return []byte(s[:min(len(s), 2*len(base.ID{}))]) }

// checksummed reports whether the last field is the checksum of what stands before it.
func checksummed(line []byte) bool {
	at := strings.LastIndexByte(string(line), ' ') + 1
	return string(line[at:]) == string(appendSum(nil, crc32.Checksum(line[:at], base.Castagnoli)))
}

// readCurrent reads and parses CURRENT. If there is none but files that prove
// there was one, that is corruption; otherwise the error matches fs.ErrNotExist.
func readCurrent(fsys vfs.FS, dir string) (current, error) {
	name := base.FilePath(dir, base.FileCurrent, 0)
	b, err := readFile(fsys, name, maxCurrentBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if lost := lostCurrent(fsys, dir); lost != nil {
			return current{}, lost
		}
	}
	if err != nil {
		return current{}, err
	}
	return parseCurrent(b, name)
}

// readFile reads a whole file of at most limit bytes.
func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("manifest: size of %s: %w", name, err)
	}
	if size > limit {
		return nil, base.Corruptf(name, limit, "file of %d bytes is impossibly large", size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), b); err != nil {
		return nil, fmt.Errorf("manifest: read %s: %w", name, err)
	}
	return b, nil
}

// candidate is a file that is to be CURRENT.
type candidate struct {
	fsys vfs.FS
	dir  string
	name string // of the file
	f    vfs.File
}

// candidate writes the file that makes CURRENT name c, with the number num.
func (c current) candidate(fsys vfs.FS, dir string, num uint64) (*candidate, error) {
	name := base.FilePath(dir, base.FileTemp, num)
	line := c.line()
	f, err := startFile(fsys, name, line)
	if err != nil {
		return nil, err
	}
	if starter, ok := f.(vfs.WriteStarter); ok {
		starter.StartWriteback(0, int64(len(line)))
	}
	return &candidate{fsys, dir, name, f}, nil
}

// sync makes the file durable, but for its name.
func (c *candidate) sync() error { return syncFile(c.f, c.name) }

// drop gives the file up.
func (c *candidate) drop() {
	c.f.Close()
	c.fsys.Remove(c.name)
}

// install makes the file, which has been synced, CURRENT, atomically and durably. The error
// matches base.ErrPoisoned if what CURRENT names now cannot be known for sure.
func (c *candidate) install() error {
	name := base.FilePath(c.dir, base.FileCurrent, 0)
	if err := c.f.Close(); err != nil {
		c.fsys.Remove(c.name)
		return poisoned("close of "+c.name, err)
	}
	if err := c.fsys.Rename(c.name, name); err != nil {
		if err = failed("rename to "+name, err); !errors.Is(err, base.ErrPoisoned) {
			c.fsys.Remove(c.name)
		}
		return err
	}
	if err := syncDir(c.fsys, c.dir); err != nil {
		return poisoned("sync of directory "+c.dir, err)
	}
	return nil
}

// A sync of the directory that was not attempted, for want of a descriptor, is tried again
// for a while: CURRENT has its new name already, which cannot be taken back.
const (
	syncTries = 50
	syncPause = 10 * time.Millisecond
)

func syncDir(fsys vfs.FS, dir string) error {
	err := fsys.SyncDir(dir)
	for try := 1; try < syncTries && errors.Is(err, vfs.ErrNotAttempted); try++ {
		time.Sleep(syncPause)
		err = fsys.SyncDir(dir)
	}
	return err
}

// Confirm makes what CURRENT names durable once more: whoever made it named so may have
// ended, or failed, before it was. It is written anew, since a sync of the directory may say nothing
// of what one before it that failed has lost. Until then nothing may be removed that the manifest
// before it needs. num is not the number of any file in the directory.
func Confirm(fsys vfs.FS, dir string, num uint64) error {
	c, err := readCurrent(fsys, dir)
	if err != nil {
		return err
	}
	next, err := c.candidate(fsys, dir, num)
	if err != nil {
		return err
	}
	if err := next.sync(); err != nil {
		next.drop()
		return err
	}
	return next.install()
}

// startFile makes a file that is not synced yet. If it fails there is none.
func startFile(fsys vfs.FS, name string, b []byte) (vfs.File, error) {
	f, err := fsys.Create(name)
	if err != nil {
		return nil, unchanged("creation of "+name, err)
	}
	vfs.WriteInPlace(f) // a manifest ends in zeros, in whose place edits come
	if _, err := f.WriteAt(b, 0); err != nil {
		f.Close()
		fsys.Remove(name)
		return nil, unchanged("write to "+name, err)
	}
	return f, nil
}

// syncFile makes a file durable, which nothing names yet, except for its directory entry. A file system may say only now that it is
// full (delayed allocation); the file is given up then, and not synced again.
func syncFile(f vfs.File, name string) error {
	if err := f.Sync(); err != nil {
		return failed("sync of "+name, err)
	}
	return nil
}

// unchanged wraps an error after which the store is what it was before.
func unchanged(what string, err error) error {
	if vfs.IsNoSpace(err) {
		return fmt.Errorf("%w: manifest: %s: %w", base.ErrNoSpace, what, err)
	}
	return fmt.Errorf("manifest: %s: %w", what, err)
}

// poisoned wraps an error after which only a recovery can tell what is durable.
func poisoned(what string, err error) error {
	return fmt.Errorf("%w: manifest: %s: %w", base.ErrPoisoned, what, err)
}

// failed is unchanged for a full disk, and where nothing was attempted, and poisoned for anything else.
func failed(what string, err error) error {
	if vfs.IsNoSpace(err) || errors.Is(err, vfs.ErrNotAttempted) {
		return unchanged(what, err)
	}
	return poisoned(what, err)
}
