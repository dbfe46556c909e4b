package mvcc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestCheckRangeOfManyKeys: many keys are put in order to be looked for in ranges, few are not, and both find the same.
func TestCheckRangeOfManyKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	var set ReadSet
	has := map[int]bool{}
	check := func() {
		t.Helper()
		for range 200 {
			low := r.IntN(100_000)
			high := low + r.IntN(300)
			want := false
			for k := low; k < high && !want; k++ {
				want = has[k]
			}
			c := set.CheckRange(key(low), key(high), 9)
			if (c != nil) != want || want && (bytes.Compare(c.Low, key(low)) < 0 || bytes.Compare(c.Low, key(high)) >= 0 || c.Seq != 9) {
				t.Fatalf("%d keys, [%d, %d): %+v, want a conflict: %v", len(has), low, high, c, want)
			}
			if !set.Ordered() {
				t.Fatal("not in order after it was looked for one in a range")
			}
		}
	}
	add := func(n int) {
		for range n {
			k := r.IntN(100_000)
			has[k] = true
			set.AddKey(key(k), base.Hash(key(k)))
		}
	}
	add(fewKeys / 2)
	if check(); set.order != nil {
		t.Errorf("%d keys were put in order", set.Len())
	}
	add(1000)
	if set.Ordered() {
		t.Error("in order before anybody asked")
	}
	check()
	add(500)
	if set.Ordered() {
		t.Error("in order although there are more")
	}
	check()
	n := set.Len()
	set.Reset()
	clear(has)
	for len(has) < n {
		add(1)
	}
	if set.Len() == n && set.Ordered() {
		t.Error("the order of the keys before is taken for that of these")
	}
	check()
}
