package engine

import (
	"errors"
	"iter"
	"time"
)

// ErrNotFound is what Get returns for an absent key, whatever the engine calls it.
var ErrNotFound = errors.New("key not found")

// ErrBusy is what Open returns, wrapped, where another process has the store open and
// the engine does not share it.
var ErrBusy = errors.New("another process has the store open")

// Options are what a workload may ask of any engine.
type Options struct {
	Sync     bool  // every commit is durable when it returns
	ReadOnly bool  // beside a writer in another process, where the engine can (CanProcesses)
	Memory   int64 // bytes the engine may use for caches and buffers; 0: its default
	Keys     int   // about how many the store will have; 0: not known
	Writers  int   // goroutines that put at once, each waiting for its own commit; 0 and 1: one
}

// Reader looks keys up.
type Reader interface {
	// Get calls see with the value of key and returns see's error, or ErrNotFound.
	// The value is valid only during the call and must not be modified.
	Get(key []byte, see func(value []byte) error) error
}

// Store is an open store. One goroutine uses it, unless the engine can be shared
// (CanShare).
type Store interface {
	Reader
	// Put sets key in a commit of its own.
	Put(key, value []byte) error
	// Delete removes a present key in a commit of its own.
	Delete(key []byte) error
	// Close ends all background work and closes the store.
	Close() error
}

// Pairs is a set of keys and values to write.
type Pairs = iter.Seq2[[]byte, []byte]

// Batcher is a Store that writes many pairs at once.
type Batcher interface {
	// PutBatch writes all pairs in as few commits as the engine allows. The note
	// says what was done about a limit, and is empty if it was one commit.
	PutBatch(pairs Pairs) (note string, err error)
}

// Viewer is a Store with read transactions or snapshots.
type Viewer interface {
	// View calls fn with a Reader of one read transaction.
	View(fn func(r Reader) error) error
}

// KeyWalker is a Store that can visit its keys without its values.
type KeyWalker interface {
	// Keys calls see with every key, in order if the engine has one. The key is
	// valid only during the call.
	Keys(see func(key []byte) error) error
}

// PairWalker is a Store that can visit keys and values.
type PairWalker interface {
	// Pairs calls see with every key and value, which are valid only during the call.
	Pairs(see func(key, value []byte) error) error
}

// Scanner is a Store with an order that can read a range.
type Scanner interface {
	// Scan calls see with the first n pairs whose key is not below from, in order.
	// Key and value are valid only during the call.
	Scan(from []byte, n int, see func(key, value []byte) error) error
}

// UnsyncedDeleter is a Store that can delete without a sync even if it was opened
// with Sync, as one article ran one engine (W1, published).
type UnsyncedDeleter interface {
	DeleteUnsynced(key []byte) error
}

// Settler is a Store whose background work can be waited for.
type Settler interface {
	// Settle returns when flushes and compactions that are due have ended, and since when.
	Settle() (since time.Time, err error)
}

// Ability is something an engine may lack.
type Ability string

// The abilities workloads ask for.
const (
	CanSync  Ability = "sync"  // make a commit durable
	CanDisk  Ability = "disk"  // keep anything after Close
	CanOrder Ability = "order" // iterate in key order
	CanBatch Ability = "batch" // Batcher
	CanView  Ability = "view"  // Viewer
	CanKeys  Ability = "keys"  // KeyWalker
	CanPairs Ability = "pairs" // PairWalker

	CanScan      Ability = "scan"      // Scanner
	CanShare     Ability = "share"     // several goroutines at once
	CanProcesses Ability = "processes" // readers in other processes beside one writer
	CanMemory    Ability = "memory"    // Options.Memory
	CanSettle    Ability = "settle"    // Settler
	CanGet       Ability = "get"       // look keys up and delete them; only floors cannot
)

// Abilities lists all of them, in the order tables show.
var Abilities = []Ability{CanSync, CanDisk, CanOrder, CanBatch, CanView, CanKeys, CanPairs, CanScan, CanShare, CanProcesses, CanMemory, CanSettle, CanGet}

// Info describes an engine.
type Info struct {
	Name   string // of the row
	Title  string // what it is, in a few words
	Module string // Go module path; the build says which version
	Floor  bool   // a floor for scale: never "best" and nobody's rival
	Native bool   // works outside the Go heap: its allocations cannot be counted
	Absent string // why this build has no driver; empty if it has one
	Cannot map[Ability]string

	// LosesAtKill says why, with sync off, a process kill can take acknowledged
	// commits; empty if they survive one.
	LosesAtKill string
	// KeepsBatches: batches survive it all the same.
	KeepsBatches bool
}

// Can reports whether the engine has an ability.
func (i Info) Can(a Ability) bool { return i.Cannot[a] == "" }

// Setting is one departure from an engine's defaults, or a caveat to know when
// reading its figures.
type Setting struct {
	Option string `json:"option"`
	Reason string `json:"reason"`
}

// Driver is one row of the tables.
type Driver struct {
	Info     Info
	Settings func(opts Options) []Setting
	Open     func(dir string, opts Options) (Store, error) // dir exists and is the store's own
	Library  func() string                                 // name and version of a native library, asked from it
}
