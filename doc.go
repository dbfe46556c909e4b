// Package cairn is an embedded, ordered, transactional key-value store in pure Go.
//
// A store is a directory. Open makes it or opens it; from then on any number of
// goroutines of the process read and write it.
//
//	db, err := cairn.Open("data", nil)
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//
//	err = db.Put([]byte("fruit/apple"), []byte("green"))
//	color, err := db.Get([]byte("fruit/apple"))
//
// # Keys and values
//
// Keys are byte strings of 1 to MaxKeyBytes bytes and are ordered like
// bytes.Compare orders them. Values have 0 to MaxValueBytes bytes. An empty value
// is a value: Get returns it as a non-nil empty slice, while an absent key is
// ErrNotFound. Whatever is over a limit is refused before a byte is written.
//
// Every slice passed in is copied, or done with, when the call returns; bounds of a scan
// when its loop begins.
//
// # One call, one commit
//
// DB.Get, DB.GetTo, DB.Has, DB.Put and DB.Delete are transactions by themselves.
// DB.Get returns a copy which the caller owns; DB.GetTo does so without allocating
// if the buffer it is given is large enough, and nothing has to be read from the disk. A Batch collects writes, and DB.Write
// commits it: all of it or nothing.
//
// # Transactions
//
// DB.View runs a function on a snapshot; DB.Update runs one that may write, and
// commits it:
//
//	err := db.Update(func(tx *cairn.Tx) error {
//		old, err := tx.Get(key)
//		if err != nil {
//			return err
//		}
//		return tx.Put(key, next(old))
//	})
//
// Transactions are serializable: the outcome is as if those that committed had run
// one after the other. That includes phantoms: a transaction that scanned a range
// conflicts with one that puts a new key into it. Any number of writers run at the
// same time; nobody waits for a lock (but a single Put or Batch of more than 256 MiB,
// or a sixteenth of Options.Memory, for another one). Instead, a commit fails if another commit has
// changed what its transaction had read. Update then runs its function again (at most 100 times;
// one that loses often goes first), so the function must be repeatable and must not have effects of its own. Writes
// without reads never conflict, and neither do read-only transactions.
//
// DB.Begin gives a transaction to be ended by hand. A read-only one is a snapshot
// and may be kept long: it pins versions on disk, and hardly any memory. Transactions may be of
// any size: what does not fit in memory is put aside on disk until the commit.
//
// A Tx and its iterators are for one goroutine at a time; a DB is for all. One process
// writes a store; others, with Options.ReadOnly, read its newest commits meanwhile.
//
// # How long slices last
//
// What Tx.Get returns lasts until the transaction ends, however long that is. Keys
// and values of scans and iterators last until the next step. Both may stand in the
// store's own memory: do not modify them, and copy what you want to keep.
//
// # Scans
//
// A Range is half open, and nil is no bound; Prefix makes the range of all keys with
// a prefix. Tx.Keys, Tx.Scan and Tx.ScanBackward are sequences for range loops:
//
//	for key, value := range tx.Scan(cairn.Prefix([]byte("fruit/"))) {
//		...
//	}
//
// An error ends the loop and stays in Tx.Err; View and Update return it even if the
// function does not look. Tx.Iter gives an Iterator that moves both ways and seeks; whether
// it has failed only Iterator.Err says.
// Keys and values live apart in tables, so walking keys alone (Keys, or an Iterator
// whose Value is not called) reads no values.
//
// # Durability
//
// A Durable commit, the default, survives power loss: the call returns once the log
// is synced, and nobody sees the commit before. A Relaxed commit survives the end of
// the process, kill -9 included, and reaches the disk within Options.SyncInterval,
// or by DB.Sync. After a power cut a store holds a prefix of its commits, each as a
// whole, with every Durable one that was acknowledged. A commit that has nothing to write syncs
// nothing: what its transaction has read of Relaxed commits DB.Sync makes durable. Stats.Recovery says what of an
// unfinished tail was dropped.
//
// # Memory
//
// Options.Memory is one bound for what the store keeps: writes not yet in
// tables, decoded pages, indexes, metadata. There is nothing else to tune. Stats.MemoryUsed tells
// how much of it is used; docs/LIMITS.md lists the little that is outside it.
//
// # Errors
//
// All errors match one of the Err variables by errors.Is, or an error of package
// io/fs or the operating system, or that of a context which ended a call. LockedError says which process has the store open,
// CorruptionError which byte of which file is damaged, ConflictError which key or
// range another transaction changed. A full disk is ErrNoSpace and heals: once there
// is space, the same call succeeds. ErrLimit takes keys of many kilobytes, and very many of
// their versions that snapshots keep, or some GiB of them in one transaction; or four billion files. A failed sync does not heal: the commits that waited
// for it get ErrCommitUnknown, and whatever writes later ErrPoisoned. The store stays
// readable, and reopening it finds out what the disk has kept.
//
// Nothing panics on the contents of a file, a key, a value or an option; a nil or zero DB or
// a nil function does. Using a closed store, transaction or iterator is an error, not
// undefined behaviour.
//
// # Taking care
//
// Files are flushed, merged and removed in the background without being asked.
// DB.Compact does it now, DB.Verify reads everything and checks it, DB.Stats and
// Options.OnEvent tell what is going on. DB.Close waits for open transactions and
// leaves a store that the next Open need not repair.
package cairn
