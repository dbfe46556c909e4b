package cairn

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs"
)

// Errors. All that the package returns can be matched with errors.Is, those with
// details with errors.As as well. Errors of the operating system are wrapped, so
// that fs.ErrPermission and the like match too.
var (
	// ErrNotFound: the key has no value.
	ErrNotFound = base.ErrNotFound
	// ErrConflict: another commit changed what the transaction had read. The
	// error is a *ConflictError; nothing was committed, try the whole again.
	ErrConflict = base.ErrConflict
	// ErrClosed: the store is closed.
	ErrClosed = base.ErrClosed
	// ErrReadOnly: the transaction or the store is read-only.
	ErrReadOnly = base.ErrReadOnly
	// ErrTxClosed: the transaction or iterator has ended, or the iterator stands on
	// no key.
	ErrTxClosed = base.ErrTxClosed
	// ErrTxManaged: Commit or Rollback was called inside View or Update, which do so themselves.
	ErrTxManaged = errors.New("cairn: the transaction is ended by View or Update")
	// ErrTxForgotten: Close did not wait for a transaction that was never ended and that nothing refers to, and
	// keeps memory that it has read. All else is done.
	ErrTxForgotten = base.ErrTxForgotten
	// ErrBatchChanged: somebody has added to a Batch while it was written. It is told by the next Write of that batch,
	// which writes nothing; or, where it could not be refused, by the one that was under way, which has committed nothing. If
	// the error is ErrPoisoned, too, that showed only in the log.
	ErrBatchChanged = base.ErrBatchChanged
	// ErrKeyTooLarge: the key is longer than MaxKeyBytes.
	ErrKeyTooLarge = base.ErrKeyTooLarge
	// ErrValueTooLarge: the value is longer than MaxValueBytes.
	ErrValueTooLarge = base.ErrValueTooLarge
	// ErrEmptyKey: keys have at least one byte.
	ErrEmptyKey = base.ErrEmptyKey
	// ErrLocked: somebody else has the store open. The error is a *LockedError.
	ErrLocked = vfs.ErrLocked
	// ErrCorrupt: a file is damaged or not what it should be. The error is a *CorruptionError.
	ErrCorrupt = base.ErrCorrupt
	// ErrPoisoned: a sync or write failed in a way that leaves the disk's contents
	// unknown. The store can still be read; to write, close it and open it again.
	ErrPoisoned = base.ErrPoisoned
	// ErrCommitUnknown: the commit's sync failed, or a write of the log that no other
	// segment of it could follow. It is not visible now; after closing
	// and opening the store it is either there as a whole or not at all.
	// Where the store is not poisoned it is there, and can be seen, but readers in other processes
	// could not be shown it: the lock file takes nothing (docs/LIMITS.md).
	ErrCommitUnknown = base.ErrCommitUnknown
	// ErrNoSpace: the disk is full (or a quota, or what files may grow to), or has only left what merging needs to make room; a
	// commit that only deletes is let through as long as there is a little left. Nothing happened; once there is space, the
	// same call works: no error that matches ErrPoisoned or ErrCommitUnknown matches it. Reading goes on meanwhile.
	// A transaction one of whose writes met it takes no more writes, and does not commit: begin it again.
	ErrNoSpace = base.ErrNoSpace
	// ErrUnsupported: the platform or file system lacks something that is needed.
	ErrUnsupported = base.ErrUnsupported
	// ErrFormatTooNew: a file was written by a later version. Nothing was changed.
	ErrFormatTooNew = base.ErrFormatTooNew
	// ErrLimit: open snapshots keep more versions of one long key than a table has room for, which passes once they are
	// closed; or the manifest would be too large, for the number of tables and the length of their keys, or what the log says of
	// the tables of one transaction, which takes no more writes then, and does not commit; or file numbers have reached 2^32
	// (docs/LIMITS.md). Nothing is lost that was committed, and all of it can be read.
	ErrLimit = base.ErrLimit
	// ErrInvalidOption: Options has a value out of its range.
	ErrInvalidOption = base.ErrInvalidOption
)

// LockedError says who has the store open: process, host, and since when, as far
// as that is known.
type LockedError = vfs.LockedError

// CorruptionError says which file is damaged (File, a path; "log" where it is not known which of its files), at which byte (Offset;
// -1 is the file as a whole), and how it showed (What, in words). It matches ErrCorrupt.
type CorruptionError = base.CorruptionError

// ConflictError names what another transaction changed: the key Low, or, if High is
// not nil, something in the range from Low up to High, where a High that is empty is
// no upper bound. Seq is the sequence of the write that did; that of its commit (Tx.CommitSeq) is the same, or greater
// where it wrote more. Wide: more had been read than is remembered
// key by key (docs/LIMITS.md), so that it may be a key that was not read. It matches ErrConflict.
type ConflictError = base.ConflictError

// Limits. Anything beyond is refused before a byte is written.
const (
	MaxKeyBytes   = base.MaxUserKeyBytes // length of a key in bytes: 65,535
	MaxValueBytes = base.MaxValueBytes   // length of a value in bytes: 1 GiB
)

func checkKey(key []byte) error {
	switch {
	case len(key) == 0:
		return ErrEmptyKey
	case len(key) > MaxKeyBytes:
		return tooLarge(ErrKeyTooLarge, len(key), MaxKeyBytes)
	}
	return nil
}

func checkPair(key, value []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(value) > MaxValueBytes {
		return tooLarge(ErrValueTooLarge, len(value), MaxValueBytes)
	}
	return nil
}

func checkRange(r Range) error {
	if n := max(len(r.Low), len(r.High)); n > MaxKeyBytes {
		return fmt.Errorf("bound of a range: %w", tooLarge(ErrKeyTooLarge, n, MaxKeyBytes))
	}
	return nil
}

func tooLarge(err error, n, limit int) error {
	return fmt.Errorf("%w: %d bytes, the limit is %d", err, n, limit)
}
