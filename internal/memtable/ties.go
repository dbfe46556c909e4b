package memtable

import (
	"bytes"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// sortTies sorts runs of refs whose heads are the same in the bits of mask, by which all are sorted, and of which the newest
// comes first: they, or their keys, may differ further on. It marks older versions. As a rule a run is the versions of one
// key, which are as they should be.
func (s *set) sortTies(c *chunk, mask uint64) {
	exact := c.exact()
	runs(len(c.refs), func(i, j int) bool { return (c.refs[i].head^c.refs[j].head)&mask == 0 }, func(from, to int) {
		if run := c.refs[from:to]; exact {
			s.sortFew(true, run)
		} else {
			s.sortRun(run, mostTurns)
		}
	})
}

// runs calls do for each run of two and more of n things that are alike.
func runs(n int, alike func(i, j int) bool, do func(from, to int)) {
	for i := 0; i < n; {
		end := i + 1
		for end < n && alike(i, end) {
			end++
		}
		if end-i > 1 {
			do(i, end)
		}
		i = end
	}
}

// mostTurns is how often a run is sorted by eight bytes of its keys before whole keys are compared: keys may have all they
// have in common in pieces.
const mostTurns = 8

// sortRun sorts refs of which the newest comes first by the eight bytes behind what all of their keys begin with, and what
// is the same in those in its turn, and marks older versions. (A multikey quicksort, Bentley and Sedgewick 1997, that takes
// eight bytes at a time, by their bits.) Compared one by one, keys would be waited for at each comparison: no cache holds
// them.
func (s *set) sortRun(refs []ref, turns int) {
	if s.versions(refs) {
		return
	}
	if len(refs) <= fewHeads || turns == 0 {
		s.sortFew(false, refs)
		return
	}
	m := sorters.Get()
	defer m.recycle()
	if common := s.fewKeys(refs); !m.gatherRefs(s, refs, common) {
		m.gatherRefs(s, refs, s.commonKey(refs))
	}
	_, differ := differing(m.heads)
	if differ == 0 { // some end there, the others have zeros
		s.sortFew(false, refs)
		return
	}
	m.sort(differ)
	newest := slices.Clone(refs)
	for i, k := range m.keys {
		refs[i] = newest[len(refs)-1-m.place(k)]
	}
	runs(len(refs), func(i, j int) bool { return m.keys[i]>>m.width == m.keys[j]>>m.width }, func(from, to int) {
		s.sortRun(refs[from:to], turns-1)
	})
}

// sortFew is sortRun by comparing whole keys, unless heads are enough.
func (s *set) sortFew(exact bool, refs []ref) {
	slices.SortFunc(refs, func(a, b ref) int { return s.compare(exact, a, b) })
	for i := range refs[1:] {
		if s.same(exact, refs[i], refs[i+1]) {
			refs[i+1].at |= older
		}
	}
}

// versions reports whether refs are of one key, and if so marks all but the first.
func (s *set) versions(refs []ref) bool {
	key := s.key(refs[0])
	for _, r := range refs[1:] {
		if r.head != refs[0].head || !bytes.Equal(s.key(r), key) {
			return false
		}
	}
	for i := range refs[1:] {
		refs[i+1].at |= older
	}
	return true
}

// fewKeys returns what some of the keys begin with.
func (s *set) fewKeys(refs []ref) []byte {
	return s.commonKey([]ref{refs[0], refs[len(refs)/2], refs[len(refs)-1]})
}

// commonKey returns what all of the keys begin with.
func (s *set) commonKey(refs []ref) []byte {
	var p prefix
	for _, r := range refs {
		p.add(base.KindPut, s.key(r))
	}
	return p.common
}

// gatherRefs takes the heads of refs behind what is common, the oldest first, and reports whether all of their keys begin
// with that.
func (m *sorter) gatherRefs(s *set, refs []ref, common []byte) bool {
	n := len(refs)
	m.heads = slices.Grow(m.heads[:0], n)[:n]
	for i, r := range refs {
		if i+keysAhead < n {
			ahead := refs[i+keysAhead]
			s.tables[ahead.num()-s.first].PrefetchKey(ahead.rec())
		}
		key := s.key(r)
		if !bytes.HasPrefix(key, common) {
			return false
		}
		m.heads[n-1-i] = base.HeadBehind(key, len(common))
	}
	return true
}
