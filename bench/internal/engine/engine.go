package engine

import (
	"errors"
	"iter"
)

// ErrNotFound is what Get returns for an absent key, whatever the engine calls it.
var ErrNotFound = errors.New("key not found")

// Options are what a workload may ask of any engine.
type Options struct {
	Sync bool // every commit is durable when it returns
}

// Reader looks keys up.
type Reader interface {
	// Get calls see with the value of key and returns see's error, or ErrNotFound.
	// The value is valid only during the call and must not be modified.
	Get(key []byte, see func(value []byte) error) error
}

// Store is an open store, used by one goroutine.
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
)

// Abilities lists all of them, in the order tables show.
var Abilities = []Ability{CanSync, CanDisk, CanOrder, CanBatch, CanView, CanKeys, CanPairs}

// Info describes an engine.
type Info struct {
	Name   string // of the row
	Title  string // what it is, in a few words
	Module string // Go module path; the build says which version
	Floor  bool   // a floor for scale: never "best" and nobody's rival
	Absent string // why this build has no driver; empty if it has one
	Cannot map[Ability]string
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
}
