package arena

import (
	"math"
	"sync"
	"testing"
)

func TestBudgetCountsByClass(t *testing.T) {
	b := NewBudget(100)
	b.Add(ClassMemtable, 30)
	b.Add(ClassPages, 50)
	b.Add(ClassPages, -10)
	if b.Limit() != 100 || b.Used() != 70 || b.UsedBy(ClassPages) != 40 || b.UsedBy(ClassIndex) != 0 {
		t.Fatalf("limit %d, used %d, pages %d, index %d", b.Limit(), b.Used(), b.UsedBy(ClassPages), b.UsedBy(ClassIndex))
	}
}

func TestBudgetWithoutLimit(t *testing.T) {
	for _, limit := range []int64{0, -1} {
		if got := NewBudget(limit).Limit(); got != math.MaxInt64 {
			t.Errorf("NewBudget(%d).Limit() = %d", limit, got)
		}
	}
}

func TestBudgetConcurrently(t *testing.T) {
	b := NewBudget(0)
	var wg sync.WaitGroup
	for c := range classes {
		for range 2 {
			wg.Go(func() {
				for range 1000 {
					b.Add(c, 3)
					b.Add(c, -2)
				}
			})
		}
	}
	wg.Wait()
	if want := int64(classes) * 2000; b.Used() != want {
		t.Fatalf("%d used, want %d", b.Used(), want)
	}
}

func TestClassesHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for c := range classes {
		if c.String() == "unknown" || seen[c.String()] {
			t.Errorf("class %d is called %q", c, c)
		}
		seen[c.String()] = true
	}
	if classes.String() != "unknown" {
		t.Errorf("class %d is called %q", classes, classes)
	}
}

// A limit that was lowered never grows by being lowered, is no less than leastLimit, and comes back in steps.
func TestBudgetLowered(t *testing.T) {
	const most = 64 << 20
	b := NewBudget(most)
	for _, c := range []struct{ lower, want int64 }{{most + 1, most}, {40 << 20, 40 << 20}, {50 << 20, 40 << 20}, {-1, leastLimit}} {
		if b.Lower(c.lower); b.Limit() != c.want {
			t.Fatalf("lowered to %d: the limit is %d, want %d", c.lower, b.Limit(), c.want)
		}
	}
	for range raiseDivisor {
		before := b.Limit()
		if b.raise(); b.Limit() <= before && before < most || b.Limit() > most {
			t.Fatalf("raised from %d to %d", before, b.Limit())
		}
	}
	if b.Limit() != most {
		t.Errorf("the limit is %d in the end, want %d", b.Limit(), most)
	}
}
