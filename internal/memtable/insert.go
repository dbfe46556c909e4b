package memtable

import (
	"bytes"
	"slices"

	"github.com/cairndb/cairn/internal/base"
)

// fewNew records are put into the last chunk one by one: a sort and a merge of its own would cost several times as much.
const fewNew = 8

// insert returns a chunk with the puts and deletes of some spans, which are newer, in their places. What those of
// sequences up to oldest hide is left out. The zero chunk has no refs yet.
func (s *set) insert(c chunk, spans []span, oldest uint64) chunk {
	c.refs = append(make([]ref, 0, len(c.refs)+records(spans)), c.refs...)
	for _, sp := range spans {
		for rec := uint32(sp.from); rec < uint32(sp.to); rec++ {
			if kind, key := sp.t.key(rec); kind != base.KindRangeDelete {
				s.admit(&c, key)
				s.put(&c, makeRef(sp.num, rec, kind&1, base.HeadBehind(key, len(c.common))), oldest)
			}
		}
	}
	return c
}

// admit makes what is said of all keys of a chunk true of one more.
func (s *set) admit(c *chunk, key []byte) {
	if len(c.refs) == 0 {
		c.common, c.length = bytes.Clone(key), len(key)
		return
	}
	if len(key) != c.length {
		c.length = 0
	}
	if n := base.CommonPrefix(c.common, key); n < len(c.common) {
		c.common = c.common[:n]
		s.setHeads(c.refs, n)
	}
}

// put puts the newest ref of all into a chunk that has room for it. Its record was there when oldest was known already: it
// is not one that was truncated and whose sequence is another's now.
func (s *set) put(c *chunk, r ref, oldest uint64) {
	exact := c.exact()
	i, _ := slices.BinarySearchFunc(c.refs, r, func(a, b ref) int { return s.compare(exact, a, b) })
	hidden := i
	if i < len(c.refs) && s.same(exact, r, c.refs[i]) {
		if s.seq(r) <= oldest {
			for hidden < len(c.refs) && s.same(exact, r, c.refs[hidden]) {
				hidden++
			}
		} else {
			c.refs[i].at |= older
		}
	}
	c.refs = slices.Replace(c.refs, i, hidden, r)
}
