package memfs

import (
	"iter"
	"math/rand/v2"
)

// Plan says how thoroughly Journal.Choices enumerates. The zero Plan takes every
// kind of choice but tears writes at sector boundaries only.
type Plan struct {
	// EveryByte: a write of up to so many bytes is torn at every byte, a longer one
	// at the boundaries of its 512-byte sectors.
	EveryByte int64
	// Deep tears every pending write with the later ones lost, and with garbage.
	// Otherwise this is done to the last pending operation only: what it would show
	// for the earlier ones was shown at their own crash points, except that a sync
	// of another file may have come between.
	Deep bool
	// Random is the number of random choices, with seeds Seed, Seed+1, ...
	Random int
	Seed   uint64
}

// Choices enumerates what a power cut after the first `at` mutations may leave.
// Different choices may leave equal images; FS.Hash tells.
func (j *Journal) Choices(at int, plan Plan) iter.Seq[Choice] {
	all := plan.of(j.Pending(at))
	return func(yield func(Choice) bool) {
		for _, s := range all {
			for i := range s.n {
				if !yield(s.choice(i)) {
					return
				}
			}
		}
	}
}

// Draw returns n of Choices, or all if there are not so many: in random order, all equally likely. It does not enumerate
// them, of which there may be a hundred thousand.
func (j *Journal) Draw(r *rand.Rand, at int, plan Plan, n int) []Choice {
	all := plan.of(j.Pending(at))
	total := 0
	for _, s := range all {
		total += s.n
	}
	n = min(n, total)
	drawn, taken := make([]Choice, 0, n), make(map[int]bool, n)
	for last := total - n; last < total; last++ { // Floyd's way to draw different numbers
		i := r.IntN(last + 1)
		if taken[i] {
			i = last
		}
		taken[i] = true
		drawn = append(drawn, nth(all, i))
	}
	r.Shuffle(n, func(a, b int) { drawn[a], drawn[b] = drawn[b], drawn[a] })
	return drawn
}

func nth(all []series, i int) Choice {
	for _, s := range all {
		if i < s.n {
			return s.choice(i)
		}
		i -= s.n
	}
	panic("memfs: no such choice")
}

// series is n choices.
type series struct {
	n      int
	choice func(i int) Choice
}

func listed(choices ...Choice) series {
	return series{len(choices), func(i int) Choice { return choices[i] }}
}

// of returns the choices about what is pending.
func (plan Plan) of(ops []Op) []series {
	all := []series{listed(wholeChoices(ops)...)}
	for i, op := range ops {
		if !op.Entry() {
			last := i == len(ops)-1
			all = append(all, plan.torn(i, op, last), tornSectors(i, op, last))
		}
	}
	return append(all, series{plan.Random, func(i int) Choice { return Random(plan.Seed + uint64(i)) }})
}

func wholeChoices(ops []Op) []Choice {
	all := []Choice{SyncedOnly()}
	if len(ops) == 0 {
		return all
	}
	all = append(all, Everything(), Everything().EntriesLost(),
		SyncedOnly().EntriesKept(), SyncedOnly().Grown(), SyncedOnly().Grown().EntriesKept())
	for i := range ops {
		all = append(all, DropOne(i), KeepOne(i))
		if !ops[i].Entry() {
			all = append(all, KeepOne(i).EntriesKept(), DropOne(i).Grown())
		}
	}
	return all
}

// torn tears operation i after each of the lengths of cuts, in several ways.
func (plan Plan) torn(i int, op Op, last bool) series {
	var ways []Choice
	if !last {
		c := TornHole(i, 0)
		ways = append(ways, c, c.Filled(FillGarbage))
	}
	if last || plan.Deep {
		c := TornPrefix(i, 0).EntriesKept()
		ways = append(ways, c, c.Filled(FillZeros), c.Filled(FillGarbage))
	}
	first, step, cuts := plan.cuts(op)
	return series{cuts * len(ways), func(k int) Choice {
		c := ways[k%len(ways)]
		c.bytes = first + step*int64(k/len(ways))
		return c
	}}
}

// cuts returns the lengths after which a write is torn, n of them: 0 < length < Length.
func (plan Plan) cuts(op Op) (first, step int64, n int) {
	step = 1
	if op.Length > plan.EveryByte {
		step = sectorBytes
	}
	first = step - op.Offset%step
	return first, step, int(max(0, (op.Length-first+step-1)/step))
}

// tornSectors tries a few patterns of sectors that end in no prefix; Random covers
// the rest.
func tornSectors(i int, op Op, last bool) series {
	if op.Offset/sectorBytes == (op.Offset+op.Length-1)/sectorBytes {
		return listed()
	}
	var all []Choice
	for _, mask := range [...]uint64{0xaaaaaaaaaaaaaaaa, 0x5555555555555555, ^uint64(1)} {
		c := TornSectors(i, mask)
		c.later = !last
		all = append(all, c, c.Filled(FillGarbage))
	}
	return listed(all...)
}
