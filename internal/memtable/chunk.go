package memtable

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/cairndb/cairn/internal/base"
)

// chunk is a sorted part of the records of some tables: by key, the newest first. What a
// search and a merge look at first stands in it, together in memory: a key misses the
// processor's caches.
type chunk struct {
	refs   []ref
	common []byte // what all keys begin with
	length int    // of every key; 0 if they are not all alike
}

// exact reports whether heads tell all keys apart.
func (c *chunk) exact() bool { return c.length > 0 && c.length-len(c.common) <= 8 }

// same reports whether two refs of a chunk, exact or not, are of the same key.
func (s *set) same(exact bool, a, b ref) bool {
	return a.head == b.head && (exact || bytes.Equal(s.key(a), s.key(b)))
}

// compare orders two refs of a chunk, or of two with the same common bytes, exact if both
// are.
func (s *set) compare(exact bool, a, b ref) int {
	if a.head != b.head {
		return cmp.Compare(a.head, b.head)
	}
	if !exact {
		if c := bytes.Compare(s.key(a), s.key(b)); c != 0 {
			return c
		}
	}
	return newerFirst(a, b)
}

// between bounds how many refs have keys less than the given one, by heads.
func (c *chunk) between(key []byte) (low, high int) {
	n := len(c.common)
	switch order := bytes.Compare(key[:min(len(key), n)], c.common); {
	case order < 0:
		return 0, 0
	case order > 0:
		return len(c.refs), len(c.refs)
	}
	h := base.Head(key[n:])
	low = sort.Search(len(c.refs), func(i int) bool { return c.refs[i].head >= h })
	alike := c.refs[low:]
	if len(alike) == 0 || alike[0].head != h || c.exact() && len(key) <= c.length {
		return low, low
	}
	if few := min(len(alike), fewAlike); alike[few-1].head != h {
		alike = alike[:few]
	}
	return low, low + sort.Search(len(alike), func(i int) bool { return alike[i].head > h })
}

// fewAlike: hardly ever do more refs have the same head.
const fewAlike = 8

// lowerBound returns how many refs of the chunk have lesser keys.
func (s *set) lowerBound(c *chunk, key []byte) int {
	low, high := c.between(key)
	n, _ := slices.BinarySearchFunc(c.refs[low:high], key, func(r ref, key []byte) int {
		if bytes.Compare(s.key(r), key) < 0 {
			return -1
		}
		return 1
	})
	return low + n
}

// merge merges two chunks, of which b is newer in every record, but for what b's of sequences up
// to oldest hide. b is often far shorter: the place of each of its refs is found by doubling steps,
// and what lies before is moved as a whole.
func (s *set) merge(a, b chunk, oldest uint64) chunk {
	c := chunk{common: a.common[:base.CommonPrefix(a.common, b.common)]}
	if a.length == b.length {
		c.length = a.length
	}
	exact := c.exact()
	from, more := s.behind(a, len(c.common)), s.behind(b, len(c.common))
	c.refs = make([]ref, 0, len(from)+len(more))
	follows := false // the first of from is an older version of the key of what stands before it
	for _, r := range more {
		if n := s.countLess(exact, from, r); n > 0 {
			c.add(from[:n], follows)
			from = from[n:]
		}
		c.refs = append(c.refs, r)
		hides := s.seq(r) <= oldest && s.live(r)
		for follows = len(from) > 0 && s.same(exact, r, from[0]); follows && hides; {
			from = from[1:]
			follows = len(from) > 0 && s.same(exact, r, from[0])
		}
	}
	c.add(from, follows)
	return c
}

// add appends refs, the first as an older version of what stands before it or as it was.
func (c *chunk) add(refs []ref, follows bool) {
	n := len(c.refs)
	c.refs = append(c.refs, refs...)
	if follows {
		c.refs[n].at |= older
	}
}

// behind returns the refs of a chunk with heads that stand behind n common bytes.
func (s *set) behind(c chunk, n int) []ref {
	if len(c.common) == n {
		return c.refs
	}
	refs := slices.Clone(c.refs)
	s.setHeads(refs, n)
	return refs
}

// setHeads makes heads what stands behind the first n bytes of the keys.
func (s *set) setHeads(refs []ref, n int) {
	for i := range refs {
		refs[i].head = base.Head(s.key(refs[i])[n:])
	}
}

// countLess returns how many refs at the front of a sorted slice come before r.
func (s *set) countLess(exact bool, refs []ref, r ref) int {
	low, high := 0, 1 // refs[:low] is less
	for high <= len(refs) && s.compare(exact, refs[high-1], r) < 0 {
		low, high = high, 2*high
	}
	less, _ := slices.BinarySearchFunc(refs[low:min(high-1, len(refs))], r, func(a, b ref) int { return s.compare(exact, a, b) })
	return low + less
}

// since returns the chunk without what stands in tables before number first.
func (c chunk) since(first uint32) chunk {
	left := slices.DeleteFunc(slices.Clone(c.refs), func(r ref) bool { return r.num() < first })
	c.refs = append(make([]ref, 0, len(left)), left...) // no more room than is needed, which is counted
	return c
}
