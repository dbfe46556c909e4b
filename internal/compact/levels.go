package compact

import "github.com/cairndb/cairn/internal/manifest"

// topBase is the highest level that may become the base level. Four leveled runs
// leave room for level 0 and the memtables within MaxRuns; a store too large for
// four levels at BaseBytes gets a larger base level instead of a fifth.
const topBase = 3

// memtableRuns is how many of MaxRuns are the memtables'.
const memtableRuns = 2

// levels is how full a version's levels are.
type levels struct {
	bytes  [manifest.NumLevels]int64
	target [manifest.NumLevels]int64 // of levels base..5; level 6 has none
	base   int                       // where runs of level 0 go
	next   [manifest.NumLevels]int   // where tables of a level go
	score  [manifest.NumLevels]float64
}

// measure sizes the levels from the bottom. The bottom counts as holding what the
// largest level holds. Each level above it is to hold a Multiplier-th of that, as
// long as this is not below BaseBytes: the level where it ends is the base level.
// So the base level's target is always within one Multiplier of BaseBytes, never so
// small that every merge of level 0 would flow right through it.
func measure(v *manifest.Version, in *Inputs) levels {
	var l levels
	size := int64(0)
	for level := range l.bytes {
		l.bytes[level] = v.Bytes(level)
		if level > 0 {
			size = max(size, l.bytes[level])
		}
	}
	l.base = manifest.Bottom
	for l.base > topBase && size/int64(in.Multiplier) >= in.BaseBytes {
		size /= int64(in.Multiplier)
		l.base--
		l.target[l.base] = size
	}
	// A level above the base that is not empty yet takes part until it is: nothing
	// may be merged past it.
	for level := l.base - 1; level > 0; level-- {
		if l.bytes[level] > 0 {
			l.base = level
		}
	}
	l.link()
	l.rate(v, in)
	return l
}

// link sets where each level's tables go: the next level that is in use.
func (l *levels) link() {
	l.next[0] = l.base
	for level := 1; level < manifest.Bottom; level++ {
		l.next[level] = level + 1
		for out := level + 1; l.target[out] == 0 && l.bytes[out] == 0 && out < manifest.Bottom; out++ {
			l.next[level] = out + 1
		}
	}
	l.next[manifest.Bottom] = manifest.Bottom
}

// rate gives each level its score: 1 is where a merge becomes due.
func (l *levels) rate(v *manifest.Version, in *Inputs) {
	leveled := 0
	for level := 1; level < manifest.NumLevels; level++ {
		if l.bytes[level] > 0 {
			leveled++
		}
	}
	trigger := max(min(in.L0Trigger, in.MaxRuns-memtableRuns-leveled), 2)
	l.score[0] = float64(len(v.L0)) / float64(trigger)
	for level := 1; level < manifest.Bottom; level++ {
		switch {
		case l.bytes[level] == 0:
		case l.target[level] > 0:
			l.score[level] = float64(l.bytes[level]) / float64(l.target[level])
		default: // a level that is to be emptied
			l.score[level] = 1 + float64(l.bytes[level])/float64(in.BaseBytes)
		}
	}
}
