package memfs

import "iter"

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
	ops := j.Pending(at)
	return func(yield func(Choice) bool) {
		_ = wholeChoices(ops, yield) && plan.tornChoices(ops, yield) && plan.randomChoices(yield)
	}
}

func wholeChoices(ops []Op, yield func(Choice) bool) bool {
	if !yield(SyncedOnly()) {
		return false
	}
	if len(ops) == 0 {
		return true
	}
	more := yield(Everything()) && yield(Everything().EntriesLost()) &&
		yield(SyncedOnly().EntriesKept()) && yield(SyncedOnly().Grown()) && yield(SyncedOnly().Grown().EntriesKept())
	for i := 0; i < len(ops) && more; i++ {
		more = yield(DropOne(i)) && yield(KeepOne(i))
		if more && !ops[i].Entry() {
			more = yield(KeepOne(i).EntriesKept()) && yield(DropOne(i).Grown())
		}
	}
	return more
}

func (plan Plan) tornChoices(ops []Op, yield func(Choice) bool) bool {
	for i, op := range ops {
		if op.Entry() {
			continue
		}
		last := i == len(ops)-1
		for n := range plan.cuts(op) {
			if !last && !(yield(TornHole(i, n)) && yield(TornHole(i, n).Filled(FillGarbage))) {
				return false
			}
			if (last || plan.Deep) && !tornTail(i, n, yield) {
				return false
			}
		}
		if !tornSectors(i, op, last, yield) {
			return false
		}
	}
	return true
}

func tornTail(i int, n int64, yield func(Choice) bool) bool {
	c := TornPrefix(i, n).EntriesKept()
	return yield(c) && yield(c.Filled(FillZeros)) && yield(c.Filled(FillGarbage))
}

// cuts yields the lengths after which a write is torn: 0 < n < Length.
func (plan Plan) cuts(op Op) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		step := int64(1)
		if op.Length > plan.EveryByte {
			step = sectorBytes
		}
		first := step - op.Offset%step
		for n := first; n < op.Length; n += step {
			if !yield(n) {
				return
			}
		}
	}
}

// tornSectors tries a few patterns of sectors that end in no prefix; Random covers
// the rest.
func tornSectors(i int, op Op, last bool, yield func(Choice) bool) bool {
	if op.Offset/sectorBytes == (op.Offset+op.Length-1)/sectorBytes {
		return true
	}
	for _, mask := range [...]uint64{0xaaaaaaaaaaaaaaaa, 0x5555555555555555, ^uint64(1)} {
		c := TornSectors(i, mask)
		c.later = !last
		if !yield(c) || !yield(c.Filled(FillGarbage)) {
			return false
		}
	}
	return true
}

func (plan Plan) randomChoices(yield func(Choice) bool) bool {
	for i := range plan.Random {
		if !yield(Random(plan.Seed + uint64(i))) {
			return false
		}
	}
	return true
}
