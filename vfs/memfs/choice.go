package memfs

import (
	"fmt"
	"math/rand/v2"
)

// Fill says what a power cut leaves in the part of a torn write that did not make
// it to the disk.
type Fill uint8

// The fills. Zeros and Garbage make the file as long as the whole write would have.
const (
	FillOld     Fill = iota // what was there before; the file does not grow over it
	FillZeros               // zero bytes
	FillGarbage             // pseudo-random bytes, the same for equal states
)

// String returns the name of the fill.
func (f Fill) String() string { return [...]string{"old", "zeros", "garbage"}[f] }

type choiceKind uint8

const (
	chooseNone choiceKind = iota
	chooseAll
	chooseAllBut
	chooseOnly
	chooseTorn
	chooseSectors
	chooseRandom
)

// rule overrides what a choice says about directory entries.
type rule uint8

const (
	entriesAsChosen rule = iota
	entriesKept
	entriesLost
)

// Choice says which of the pending operations (Journal.Pending) a power cut keeps.
// It is a small value; String names it well enough to repeat it. An entry change
// that a choice loses is kept after all if a later change of the same name is kept
// (see the crash model in the package documentation).
type Choice struct {
	kind    choiceKind
	index   int    // the pending operation it is about
	bytes   int64  // of a torn write: how many bytes arrived
	sectors uint64 // of a write torn in sectors: which arrived
	seed    uint64
	fill    Fill
	later   bool // operations after a torn one are kept
	grown   bool
	entries rule
}

// SyncedOnly loses everything that no sync covered.
func SyncedOnly() Choice { return Choice{kind: chooseNone} }

// Everything keeps every pending operation.
func Everything() Choice { return Choice{kind: chooseAll} }

// DropOne loses the i-th pending operation and keeps the rest.
func DropOne(i int) Choice { return Choice{kind: chooseAllBut, index: i} }

// KeepOne keeps the i-th pending operation alone.
func KeepOne(i int) Choice { return Choice{kind: chooseOnly, index: i} }

// TornPrefix keeps what was pending before the i-th operation, the first n bytes
// of that one, and nothing of what came after it.
func TornPrefix(i int, n int64) Choice {
	return Choice{kind: chooseTorn, index: i, bytes: n}
}

// TornHole is TornPrefix with the later operations kept: a hole before valid data.
func TornHole(i int, n int64) Choice {
	return Choice{kind: chooseTorn, index: i, bytes: n, later: true}
}

// Garbage is TornPrefix with garbage where the rest of the write should be.
func Garbage(i int, n int64) Choice { return TornPrefix(i, n).Filled(FillGarbage) }

// TornSectors keeps what was pending before the i-th operation, those 512-byte
// sectors of it (aligned in the file) whose bit in mask is set, counted from its
// first and modulo 64, and nothing of what came after it.
func TornSectors(i int, mask uint64) Choice {
	return Choice{kind: chooseSectors, index: i, sectors: mask}
}

// Random keeps a random subset, parts of it torn. Equal seeds choose equally.
func Random(seed uint64) Choice { return Choice{kind: chooseRandom, seed: seed} }

// Filled returns c with what the lost part of a torn write shows.
func (c Choice) Filled(f Fill) Choice { c.fill = f; return c }

// LaterKept returns c with the operations after a torn one kept.
func (c Choice) LaterKept() Choice { c.later = true; return c }

// Grown returns c with the file lengths of lost writes kept: their bytes read zero.
func (c Choice) Grown() Choice { c.grown = true; return c }

// EntriesKept returns c with every entry change kept, whatever happens to data.
func (c Choice) EntriesKept() Choice { c.entries = entriesKept; return c }

// EntriesLost returns c with every pending entry change lost, whatever happens to
// data.
func (c Choice) EntriesLost() Choice { c.entries = entriesLost; return c }

// String names the choice completely.
func (c Choice) String() string {
	s := c.name()
	if c.fill != FillOld {
		s += " fill=" + c.fill.String()
	}
	if c.later {
		s += " later=kept"
	}
	if c.grown {
		s += " grown"
	}
	return s + [...]string{"", " entries=kept", " entries=lost"}[c.entries]
}

func (c Choice) name() string {
	switch c.kind {
	case chooseNone:
		return "SyncedOnly"
	case chooseAll:
		return "Everything"
	case chooseAllBut:
		return fmt.Sprintf("DropOne(%d)", c.index)
	case chooseOnly:
		return fmt.Sprintf("KeepOne(%d)", c.index)
	case chooseTorn:
		return fmt.Sprintf("Torn(%d, %d)", c.index, c.bytes)
	case chooseSectors:
		return fmt.Sprintf("TornSectors(%d, %#x)", c.index, c.sectors)
	}
	return fmt.Sprintf("Random(%d)", c.seed)
}

// fateKind is what happens to one pending operation.
type fateKind uint8

const (
	fateLost fateKind = iota
	fateKept
	fateTorn
	fateSectors
)

type fate struct {
	kind    fateKind
	bytes   int64  // fateTorn: bytes that arrived
	sectors uint64 // fateSectors: which arrived
	fill    Fill
	grown   bool // the file is as long as if the operation were kept
}

// fates decides about every pending operation.
func (c Choice) fates(at int, ops []pendingOp) []fate {
	fates := make([]fate, len(ops))
	if c.kind == chooseRandom {
		c.randomFates(at, ops, fates)
	} else {
		for i := range fates {
			fates[i] = c.fateOf(i)
		}
	}
	c.settleEntryFates(ops, fates)
	if c.grown {
		for i := range fates {
			fates[i].grown = true
		}
	}
	return fates
}

func (c Choice) fateOf(i int) fate {
	kept := false
	switch c.kind {
	case chooseAll:
		kept = true
	case chooseAllBut:
		kept = i != c.index
	case chooseOnly:
		kept = i == c.index
	case chooseTorn:
		if i == c.index {
			return fate{kind: fateTorn, bytes: c.bytes, fill: c.fill}
		}
		kept = i < c.index || c.later
	case chooseSectors:
		if i == c.index {
			return fate{kind: fateSectors, sectors: c.sectors, fill: c.fill}
		}
		kept = i < c.index || c.later
	}
	return keptIf(kept)
}

func keptIf(kept bool) fate {
	if kept {
		return fate{kind: fateKept}
	}
	return fate{}
}

// randomFates draws one bias per state, so that nearly empty, nearly full and even
// subsets all come up.
func (c Choice) randomFates(at int, ops []pendingOp, fates []fate) {
	r := rand.New(rand.NewPCG(c.seed, uint64(at)))
	keep := [...]int{1, 4, 6, 7}[r.IntN(4)] // of 8
	for i := range ops {
		fates[i] = keptIf(r.IntN(8) < keep)
		if ops[i].entry() || r.IntN(4) > 0 {
			continue
		}
		fates[i] = fate{
			kind:    [...]fateKind{fateLost, fateTorn, fateSectors}[r.IntN(3)],
			bytes:   r.Int64N(ops[i].n + 1),
			sectors: r.Uint64(),
			fill:    Fill(r.IntN(3)),
			grown:   r.IntN(2) == 0,
		}
	}
}

// settleEntryFates makes the fates of entry changes whole and consistent.
func (c Choice) settleEntryFates(ops []pendingOp, fates []fate) {
	keep := make([]bool, len(ops))
	some := false
	for i := range ops {
		if !ops[i].entry() {
			continue
		}
		switch c.entries {
		case entriesAsChosen:
			keep[i] = fates[i].kind == fateKept
		case entriesKept:
			keep[i] = true
		}
		some = some || keep[i]
	}
	if some {
		keepEarlier(ops, keep)
	}
	for i := range ops {
		if ops[i].entry() {
			fates[i] = keptIf(keep[i])
		}
	}
}
