package vfs

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// FS is a hierarchical file system. Names are paths as package path/filepath makes them:
// separated by what the operating system separates them with. All methods are safe for concurrent use.
// Errors match io/fs.ErrNotExist, ErrExist and ErrPermission where these apply;
// a full disk matches IsNoSpace.
type FS interface {
	// Create makes a new, empty file open for reading and writing. It fails with
	// fs.ErrExist if name exists: a store never truncates.
	Create(name string) (File, error)
	// Open opens an existing regular file for reading. Anything else (directory,
	// symbolic link, FIFO, device) is refused with an error that says so.
	Open(name string) (File, error)
	// OpenReadWrite opens an existing regular file for reading and writing.
	OpenReadWrite(name string) (File, error)
	// Remove deletes a file or an empty directory.
	Remove(name string) error
	// Rename replaces newname atomically. An error that matches ErrNotAttempted came before
	// the attempt, so that nothing has changed; after any other it may have succeeded.
	Rename(oldname, newname string) error
	// Link makes newname another name of the file oldname.
	Link(oldname, newname string) error
	// MkdirAll makes a directory and its parents.
	MkdirAll(dir string) error
	// List returns the names (not paths) of a directory's entries, sorted.
	List(dir string) ([]string, error)
	// Stat describes a file or directory.
	Stat(name string) (FileInfo, error)
	// SyncDir makes the entries of dir (creations, renames, removals) durable. An
	// error that matches ErrNotAttempted came before the sync, so that nothing is lost
	// by it; after any other nobody knows what is durable.
	SyncDir(dir string) error
	// Lock takes the lock file name, creating it if needed, and holds it until the
	// closer is closed or the process ends. Exclusive locks exclude every other
	// holder, in this process too; shared ones exclude exclusive ones. If somebody
	// else holds it the error is a *LockedError, at once.
	Lock(name string, shared bool) (io.Closer, error)
}

// File is an open file. ReadAt, WriteAt and Sync may be called concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync makes the file's bytes and size durable. It says nothing about the
	// file's directory entry. A failed Sync must never be retried (see fsyncgate).
	Sync() error
	// Preallocate reserves space for bytes [off, off+n) so that writing them later
	// cannot run out of space; the file grows to at least off+n zero bytes.
	// A file system that cannot returns an error matching errors.ErrUnsupported.
	Preallocate(off, n int64) error
	// Size returns the file's length in bytes.
	Size() (int64, error)
}

// Unlinker is an FS that can remove a file before its space is free. It is optional.
type Unlinker interface {
	// Unlink is Remove of a file that does not wait until its space is free, which takes
	// milliseconds where the device is told of it. The caller calls free, from any
	// goroutine, to have that done.
	Unlink(name string) (free func(), err error)
}

// SpaceTeller is an FS that knows how much space there is. It is optional.
type SpaceTeller interface {
	// FreeSpace returns how many bytes files in a directory may take more, as far as is known at this
	// moment: others may use the disk too. The error is one of errors.ErrUnsupported where there is no limit,
	// or none is known.
	FreeSpace(dir string) (int64, error)
}

// FreeSpace returns how many bytes files in a directory may take more, and whether that is known.
func FreeSpace(fsys FS, dir string) (bytes int64, known bool) {
	t, ok := fsys.(SpaceTeller)
	if !ok {
		return 0, false
	}
	bytes, err := t.FreeSpace(dir)
	return bytes, err == nil
}

// soonBytes bounds the files that are not synced whose space RemoveSoon leaves for later:
// until then it could be written to the device, if somebody asks for all that is in the
// system's cache. To forget it, on the other hand, takes little time.
const soonBytes = 1 << 20

// RemoveSoon is Remove of a file whose space, if it is synced or small, may be free a little
// later: the device is told of it, which takes 90 ms for 64 MiB of ext4.
func RemoveSoon(fsys FS, name string, synced bool) error {
	u, ok := fsys.(Unlinker)
	if !ok {
		return fsys.Remove(name)
	}
	if info, err := fsys.Stat(name); !synced && (err != nil || info.Size > soonBytes) {
		return fsys.Remove(name)
	}
	free, err := u.Unlink(name)
	if err == nil {
		go free()
	}
	return err
}

// WriteStarter is a File that can begin to write to the device. It is optional.
type WriteStarter interface {
	// StartWriteback begins to write to the device what was written to the n bytes at off,
	// and does not wait for it: the Sync that follows finds less to do, and those of other
	// files meanwhile are not behind all of it. Nothing is durable by it, and an error is told
	// by the Sync that follows.
	StartWriteback(off, n int64)
}

// Scatterer is a File that can be told how it is read. It is optional.
type Scatterer interface {
	// Scattered opens the file once more, for reads here and there: beside what is asked
	// for the system reads nothing. It is the same file, whatever its name is now. The
	// caller closes it.
	Scattered() (File, error)
}

// Mapper is a File whose bytes can be written by storing them. It is optional.
type Mapper interface {
	// Map maps bytes [off, off+n) for reading and writing, shared with everybody who reads
	// or writes the file: what was stored there is in the file, as if it had been written,
	// also when the process is killed a moment later, and Sync makes it durable. off is a
	// multiple of MapUnit. The bytes are within the file, and preallocated: to store where
	// the disk is full or broken, or the file was cut, is a memory fault, and to load where
	// it cannot be read.
	Map(off int64, n int) (Mapping, error)
}

// Viewer is a File that can be read where the system has it in memory. It is optional.
type Viewer interface {
	// View maps the first n bytes for reading: whatever anybody writes to the file, or stores in it, is there at
	// once. They are within the file. To load where the disk is broken, or the file was cut, is a memory fault, and
	// so is a store.
	View(n int) (Mapping, error)
}

// Mapping is what Map or View made. It lasts until Unmap, whether the file is closed before or not.
type Mapping interface {
	// Bytes returns the memory: whole pages of the operating system's that nothing else uses.
	Bytes() []byte
	// LetGo takes bytes [from, to), and what else is in their pages, out of the process until
	// it touches them again. They may be in use meanwhile. A Sync that follows has to protect
	// each page that was stored to and is in the process, one by one, and to tell all
	// processors: this tells them once.
	LetGo(from, to int64)
	// Unmap ends the mapping. Nobody uses the memory any more.
	Unmap() error
}

// Fetcher is a Mapping that can be read from the device in large pieces. It is optional.
type Fetcher interface {
	// Fetch has the system read what it has not in memory of bytes [from, to), which all are about to be used.
	// It need not wait until they are there. Where that fails, nothing happens.
	Fetch(from, to int64)
}

// Toucher is a Mapping that can be made ready to be stored to. It is optional.
type Toucher interface {
	// Touch brings the pages of bytes [from, to) into the process, so that who stores to them does not wait for that. Where
	// that fails, nothing happens.
	Touch(from, to int64)
}

// Shortener is a File that can be cut. It is optional.
type Shortener interface {
	// Shorten gives back what is behind the first n bytes, of which the file has more, and its space. After a crash all
	// of it may be there again. Nobody has mapped it.
	Shorten(n int64) error
}

// Overwriter is a File that can be told that it will be written more than once. It is optional.
type Overwriter interface {
	// WriteInPlace has the system write the file where it stands, in the space that was reserved for it, where it would take
	// other space for what is written again, which a full disk has not. It may then keep no checksums of its own of what the
	// file holds. Nothing was written to the file yet. Where that fails, nothing happens.
	WriteInPlace()
}

// WriteInPlace tells a file in which nothing is yet, and that knows what to do about it, that it will be written more than once.
func WriteInPlace(f File) {
	if o, ok := f.(Overwriter); ok {
		o.WriteInPlace()
	}
}

// Cacher is a File that knows what of it is in memory. It is optional.
type Cacher interface {
	// Cached reports whether the system has the first n bytes in memory, so that to write
	// a part of a page waits for no read: as far as a look at one in each MapUnit tells,
	// and at this moment.
	Cached(n int64) bool
}

// MapUnit is a multiple of every page size there is.
const MapUnit = 64 << 10

// FileInfo describes a file or directory.
type FileInfo struct {
	Size      int64 // length in bytes
	Allocated int64 // bytes the file occupies on the device, as far as known
	Dir       bool
}

// LockedError says who holds a lock. PID is 0 and Since zero where unknown.
type LockedError struct {
	Path  string
	PID   int
	Host  string
	Since time.Time
}

// ErrLocked is matched by every *LockedError.
var ErrLocked = errors.New("cairn: store is locked")

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("cairn: %s is locked by another holder", e.Path)
	}
	return fmt.Sprintf("cairn: %s is locked by process %d on %s since %s", e.Path, e.PID, e.Host, e.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }
