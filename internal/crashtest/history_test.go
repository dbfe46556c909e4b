package crashtest

import (
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// Commits of unknown outcome that turn up have an order that nobody knows: what is found
// decides, and from then on it must stay so.
func TestOrderOfUnknownCommits(t *testing.T) {
	h := &History{}
	commit := func(err error, seq uint64, ops ...Op) *Commit {
		c := h.Begin(true, 0, ops...)
		h.End(c, seq, err, 1)
		return c
	}
	put := func(key, value string) Op { return Op{base.KindPut, key, value} }
	commit(nil, 1, put("hot", "0"), put("gone", "0"))
	one := commit(base.ErrCommitUnknown, 0, put("hot", "1"), put("mine", "1"))
	two := commit(base.ErrCommitUnknown, 0, put("hot", "2"), put("gone", "2"))
	three := commit(base.ErrCommitUnknown, 0, Op{base.KindRangeDelete, "g", "h"})
	h.order()
	extra := []*Commit{one, two, three}
	found := func(hot string) *Found {
		pairs := []Pair{{"hot", hot}, {"mine", "1"}}
		for i := range 4 {
			pairs = append(pairs, Pair{tagKey(i), string(rune('0' + i))})
		}
		return &Found{Prefix: 1, Extra: extra, Pairs: pairs}
	}
	for _, hot := range []string{"1", "2"} {
		f := found(hot)
		next := h.Recovered(f)
		next.order()
		if got := next.state(4, nil); !slices.Equal(got, f.Pairs) {
			t.Errorf("found hot = %s: afterwards %v is expected, not %v", hot, got, f.Pairs)
		}
	}
	if !one.leaves("hot", "1", true) || one.leaves("hot", "2", true) || one.leaves("gone", "", false) || !three.leaves("gone", "", false) {
		t.Error("what a commit leaves of a key")
	}
	h.Resolve(2, found("1").get)
	h.order()
	if got, want := h.state(4, nil), found("1").Pairs; !slices.Equal(got, want) {
		t.Errorf("resolved: %v, want %v", got, want)
	}
}
