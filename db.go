package cairn

import (
	"context"
	"path/filepath"

	"github.com/cairndb/cairn/internal/directory"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/txn"
	"github.com/cairndb/cairn/vfs"
)

// DB is an open store. All methods are safe for concurrent use.
type DB struct {
	e       *engine.Engine
	updates precedence
}

// Open opens the store in directory dir and makes it, and the directory, if there
// is none. nil options are safe defaults. One process at a time may have a store
// open for writing; within it, one Open serves any number of goroutines. The
// directory is the store's own: keep nothing else in it. What Open makes has the
// permissions 0755 and 0644, less the process's umask.
//
// After an unclean end Open recovers: every durable commit is there, every
// relaxed one that reached the disk in order, each as a whole or not at all.
// Stats().Recovery tells what was dropped. Files that are damaged are a
// *CorruptionError, but for damage of the log that reaches to its end, however much it
// takes: that cannot be told from what a crash has torn or, if it is zeros, from a log
// that ended there.
func Open(dir string, opts *Options) (*DB, error) {
	if err := opts.check(dir); err != nil {
		return nil, err
	}
	at, err := filepath.Clean(dir), error(nil)
	if opts == nil || opts.FS == nil || opts.FS == vfs.OS() {
		at, err = directory.Resolve(dir)
	}
	if err != nil {
		return nil, err
	}
	e, err := engine.Open(opts.config(at))
	if err != nil {
		return nil, err
	}
	return &DB{e: e, updates: newPrecedence()}, nil
}

// Close waits until open transactions have ended (in the function of a View or an Update it
// would wait for itself, for ever), writes what is in memory to tables, merges them if there is
// not too much to merge (up to 256 MiB, or all of it where memory holds as much as tables do),
// and releases everything. It waits for calls that are under way, too: a Verify or Compact ends sooner if its
// ctx does. It is quick rather than
// thorough: see Balanced. It reports what it could not do itself (of what went wrong in the background
// Stats and OnEvent tell, of files that could not be removed, too: the next Open does that), and, when everything
// is done, with ErrTxForgotten, that a transaction was never ended. Log files
// that it has removed stay open for some milliseconds more, while their space is given
// back: until then the file system can neither be unmounted nor be made read-only. Closing
// twice is fine. From the moment Close is called every new call on the DB fails with
// ErrClosed, unless its arguments are wrong; transactions that are open go on, and may commit.
func (db *DB) Close() error { return db.e.Close() }

// Get returns the value of key: a copy the caller owns. A present empty value is
// not nil. ErrNotFound if there is none.
func (db *DB) Get(key []byte) ([]byte, error) { return db.GetTo(key, nil) }

// GetTo is Get with the value appended to dst[:0]; it allocates nothing if the
// value fits and no page has to be read or decompressed for it. dst nil works like Get. With an error it returns dst[:0], so that the
// memory can be used again.
func (db *DB) GetTo(key, dst []byte) ([]byte, error) {
	if err := checkKey(key); err != nil {
		return dst[:0], err
	}
	return db.e.GetTo(rootBucket, key, dst)
}

// Has reports whether key has a value, without reading it.
func (db *DB) Has(key []byte) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	return db.e.Has(rootBucket, key)
}

// Put sets the value of key, as a commit of its own. After an error the value is not
// there, but of ErrCommitUnknown, which only reopening the store decides, if it is poisoned. Nobody may change a long
// value before Put returns: the log may be damaged, and with it the commits of others (docs/LIMITS.md).
func (db *DB) Put(key, value []byte) error {
	if err := checkPair(key, value); err != nil {
		return err
	}
	return txn.Put(db.e, rootBucket, key, value)
}

// Delete removes key, as a commit of its own. Deleting an absent key is not an error.
// After an error it is still there; of ErrCommitUnknown see Put.
func (db *DB) Delete(key []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	return txn.Delete(db.e, rootBucket, key)
}

// Write commits a batch: all of it or nothing. It returns the first error of the
// batch's methods, if there was one, and then nothing is written. The batch is
// unchanged and may be written again, but not blindly after ErrCommitUnknown (see Put).
// nil is an empty batch.
func (db *DB) Write(b *Batch) error {
	if b == nil {
		b = new(Batch)
	}
	if b.err != nil {
		return b.err
	}
	return txn.Apply(db.e, &b.entries)
}

// Sync makes all commits acknowledged before the call durable. On a read-only store it is
// ErrReadOnly.
func (db *DB) Sync() error { return db.e.Sync() }

// Compact writes what is in memory to tables and merges the tables that hold keys
// of r down to the last level, small ones together: what was committed before the call. It is never
// needed: the store does so by itself. ctx, which may be nil, ends it early with ctx.Err(), after the
// flush or merge of the store's own that it waits for, which may be seconds; what a merge of its own has
// written by then is given up. On a read-only store it is ErrReadOnly.
func (db *DB) Compact(ctx context.Context, r Range) error {
	if ctx == nil {
		ctx = context.Background()
	}
	low, high := r.internal(nil, nil)
	return db.e.Compact(ctx, low, high)
}

// View runs fn in a read-only transaction: a snapshot. It returns fn's error, or
// else an error met by a scan (Tx.Err).
func (db *DB) View(fn func(tx *Tx) error) error {
	tx, err := db.begin(false, true)
	if err != nil {
		return err
	}
	defer tx.end()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.err
}

// Begin starts a transaction that the caller ends with Commit or Rollback. A
// read-only one is a snapshot and may live long: it holds back the removal of
// what it can see, but hardly any memory: slices it handed out, what iterators stand on,
// range deletes, and about 1 KB.
func (db *DB) Begin(writable bool) (*Tx, error) { return db.begin(writable, false) }

func (db *DB) begin(writable, managed bool) (*Tx, error) {
	tx, err := txn.Begin(db.e, writable)
	if err != nil {
		return nil, err
	}
	t := newHandle(tx, managed)
	t.tx, t.seq, t.managed = tx, tx.Snapshot(), managed
	return t, nil
}
