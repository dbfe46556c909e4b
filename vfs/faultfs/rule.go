package faultfs

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn/vfs"
)

// Kind is a set of kinds of operation.
type Kind uint32

// The kinds of operation. Close is that of a file or a lock.
const (
	Create Kind = 1 << iota
	Open        // Open and OpenReadWrite
	Read
	Write
	Sync
	Preallocate
	Size
	Close
	Remove
	Rename
	Link
	Mkdir
	List
	Stat
	SyncDir
	Lock

	// All is every kind.
	All Kind = 1<<iota - 1
	// Mutations are the kinds that change what is or will be on the disk.
	Mutations = Create | Write | Sync | Preallocate | Remove | Rename | Link | Mkdir | SyncDir
)

var kindNames = [...]string{
	"create", "open", "read", "write", "sync", "preallocate", "size", "close",
	"remove", "rename", "link", "mkdir", "list", "stat", "syncdir", "lock",
}

// String returns the names of the kinds, joined by "|".
func (k Kind) String() string {
	var names []string
	for i, name := range kindNames {
		if k>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Rule says what happens to which operation.
type Rule struct {
	// Kinds are the kinds it is about; 0 means All.
	Kinds Kind
	// Name is a pattern of path.Match for the last element of the operation's path
	// (either path of Rename and Link); "" matches every name.
	Name string
	// At is the ordinal of the operation it hits, counted from 1 among those that
	// match Kinds and Name since the rule was added; 0 means the next one.
	At int64
	// Sticky hits all later matching operations too.
	Sticky bool
	// Do is what happens. The zero Action only counts.
	Do Action
}

type actionKind uint8

const (
	actNothing actionKind = iota
	actFail
	actShort
	actTear
	actPretend
	actDoneBut
)

// Action is what a rule does to an operation.
type Action struct {
	kind  actionKind
	err   error
	bytes int
	delay time.Duration
}

// Fail makes the operation do nothing and return err, wrapped with its kind and
// path.
func Fail(err error) Action { return Action{kind: actFail, err: err} }

// NoSpace is Fail with an error that matches vfs.IsNoSpace.
func NoSpace() Action { return Fail(vfs.ErrNoSpace) }

// Half as the argument of Short and Tear means half of the bytes asked for.
const Half = -1

// Short makes a write stop after n bytes with err, and a read return n bytes with
// err. Any other operation fails with err.
func Short(n int, err error) Action { return Action{kind: actShort, bytes: n, err: err} }

// Tear cuts the power: a write leaves n bytes, any other operation nothing, and
// from then on everything fails with ErrPowerCut.
func Tear(n int) Action { return Action{kind: actTear, bytes: n, err: ErrPowerCut} }

// Delay makes the operation take d longer.
func Delay(d time.Duration) Action { return Action{delay: d} }

// Late returns a, done after d only.
func (a Action) Late(d time.Duration) Action {
	a.delay = d
	return a
}

// Pretend makes an operation that returns nothing but an error (Sync, SyncDir,
// Remove, ...) report success without being done: what a store must not survive
// unnoticed if its tests are worth anything. Other operations fail.
func Pretend() Action { return Action{kind: actPretend, err: errPretend} }

// DoneBut makes an operation that returns nothing but an error (Rename, SyncDir, ...), or a file
// (Create, Open), report err after it was done: what a network does that loses the answer. Other
// operations fail.
func DoneBut(err error) Action { return Action{kind: actDoneBut, err: err} }

// prefix is how many of n bytes the action lets through.
func (a Action) prefix(n int) int {
	if a.bytes < 0 {
		return n / 2
	}
	return min(a.bytes, n)
}

// String says what the action does, for messages.
func (a Action) String() string {
	if a.delay > 0 && a.kind != actNothing {
		return Delay(a.delay).String() + ", " + a.Late(0).String()
	}
	switch a.kind {
	case actNothing:
		if a.delay > 0 {
			return fmt.Sprintf("delay %v", a.delay)
		}
		return "count"
	case actFail:
		return fmt.Sprintf("fail: %v", a.err)
	case actShort:
		return fmt.Sprintf("short(%d): %v", a.bytes, a.err)
	case actTear:
		return fmt.Sprintf("tear(%d)", a.bytes)
	case actDoneBut:
		return fmt.Sprintf("done, but: %v", a.err)
	}
	return "pretend"
}

// Handle is a rule in force.
type Handle struct {
	rule        Rule
	seen, fired atomic.Int64
	off         atomic.Bool
}

// Seen returns how many operations matched the rule's kinds and name.
func (h *Handle) Seen() int64 { return h.seen.Load() }

// Fired returns how many operations the rule hit.
func (h *Handle) Fired() int64 { return h.fired.Load() }

// Stop takes the rule out of force. Its counts remain.
func (h *Handle) Stop() { h.off.Store(true) }

// meet counts an operation and reports whether the rule is to act on it. Calls are
// serialised by the FS.
func (h *Handle) meet(e *Event) bool {
	if h.off.Load() || !h.rule.matches(e) {
		return false
	}
	n := h.seen.Add(1)
	at := max(h.rule.At, 1)
	return h.rule.Do != (Action{}) && (n == at || h.rule.Sticky && n > at)
}

func (r *Rule) matches(e *Event) bool {
	return (r.Kinds == 0 || r.Kinds&e.Kind != 0) && (r.named(e.Name) || e.To != "" && r.named(e.To))
}

func (r *Rule) named(name string) bool {
	if r.Name == "" {
		return true
	}
	ok, err := path.Match(r.Name, path.Base(filepath.ToSlash(name)))
	return ok && err == nil
}
