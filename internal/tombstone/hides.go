package tombstone

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
)

// Hides reports whether a merge drops every row of a table because of tombstones, so that it need not read them: those of
// its keys are hidden by ones that are newer than all rows, and that everybody sees who sees any of them.
func (l *List) Hides(t *base.TableMeta, s Stripes) bool {
	vis := base.Visibility{Snapshot: s.Ceiling(t.MinSeq)}
	for key := t.Smallest; ; {
		high, seq := l.stretch(key, vis)
		if seq <= t.MaxSeq {
			return false
		}
		if c := bytes.Compare(high, t.Largest); c > 0 || c == 0 && t.LargestExclusive {
			return true
		}
		key = high
	}
}

// stretch returns Cover of a key, and the end of the keys behind it that have the same, as far as that is known; nil if it is
// not covered.
func (l *List) stretch(key []byte, vis base.Visibility) (high []byte, seq uint64) {
	if l == nil {
		return nil, 0
	}
	if l.nest != nil {
		if i := l.nest.cell(key); i >= 0 && i < l.nest.cells() {
			return l.nest.bounds[i+1], l.nest.cellCover(i, vis)
		}
		return nil, 0
	}
	if i := l.find(key); i >= 0 && bytes.Compare(key, l.frags[i].High) < 0 {
		return l.frags[i].High, newestSeen(l.frags[i].Seqs, vis)
	}
	return nil, 0
}
