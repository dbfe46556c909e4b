package result

import "strconv"

// Class says how often an engine synced, by counting system calls.
type Class string

// Classes. A commit that was acknowledged before a sync of a file of the store had been
// made is not durable, however many syncs come later. That the sync came after what was written,
// and was of the file it was written to, is not looked at: an engine that syncs an empty file and
// then writes is taken for one that syncs.
const (
	EveryCommit Class = "every commit" // each with a sync of its own before its acknowledgement
	Grouped     Class = "grouped"      // each before its acknowledgement, one sync serving several
	SomeCommits Class = "some commits" // only some before their acknowledgement
	NoCommit    Class = "none"
	NotCounted  Class = "could not be counted"
)

// Worse orders classes.
func (c Class) Worse(than Class) bool { return severity[c] > severity[than] }

var severity = map[Class]int{EveryCommit: 0, Grouped: 1, NotCounted: 2, SomeCommits: 3, NoCommit: 4}

// Durability is what a separate run of an engine under the tracer showed for one
// kind of commit. It is not timed.
type Durability struct {
	Engine  string `json:"engine"`
	Sync    bool   `json:"sync"` // what the engine was asked for
	Kind    string `json:"kind"` // put, delete, batch, shared
	Class   Class  `json:"class"`
	Commits int    `json:"commits"` // acknowledged
	Durable int    `json:"durable"` // of these: synced before the acknowledgement
	Syncs   int    `json:"syncs"`   // calls while such commits were under way
	Why     string `json:"why,omitempty"`

	Calls map[string]int `json:"calls,omitempty"` // of the whole run, all kinds, by name
}

// CellDurability sums up the kinds of commit a cell is made of; the class is the
// worst of them.
type CellDurability struct {
	Class   Class  `json:"class"`
	Commits int    `json:"commits"`
	Syncs   int    `json:"syncs"`
	Why     string `json:"why,omitempty"`   // it could not be counted
	Fault   string `json:"fault,omitempty"` // it was asked to sync and did not
}

// Sum sums up the kinds, or returns nil if there are none.
func Sum(kinds []Durability) *CellDurability {
	if len(kinds) == 0 {
		return nil
	}
	sum := &CellDurability{Class: EveryCommit}
	for _, k := range kinds {
		sum.Commits += k.Commits
		sum.Syncs += k.Syncs
		if k.Class.Worse(sum.Class) {
			sum.Class, sum.Why = k.Class, k.Why
		}
		if sum.Fault == "" {
			sum.Fault = k.Fault()
		}
	}
	return sum
}

// Fault says what is wrong if the engine was asked to sync and did not.
func (d Durability) Fault() string {
	switch {
	case !d.Sync || d.Class == EveryCommit || d.Class == Grouped || d.Class == NotCounted:
		return ""
	case d.Class == NoCommit:
		return "NOT SYNCED: asked for durable commits, it acknowledged " + count(d.Commits, d.Kind) + " and synced none of them"
	}
	return "NOT SYNCED: asked for durable commits, it acknowledged " + count(d.Commits, d.Kind) + " and synced only " + count(d.Durable, "") + " of them before"
}

func count(n int, kind string) string {
	if kind == "" {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(n) + " commits (" + kind + ")"
}
