package invariants_test

import (
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/invariants"
)

func TestAssertPanicsOnlyWhenEnabled(t *testing.T) {
	defer func() {
		r := recover()
		if invariants.Enabled != (r != nil) {
			t.Fatalf("Enabled=%v, recovered %v", invariants.Enabled, r)
		}
		if r != nil && !strings.Contains(r.(string), "page 7") {
			t.Fatalf("message %q lacks its argument", r)
		}
	}()
	invariants.Assert(false, "page %d", 7)
}

func TestAssertHoldsItsPeace(t *testing.T) {
	invariants.Assert(true, "never shown")
}

func TestAssertCostsNoAllocationWhenDisabled(t *testing.T) {
	if invariants.Enabled {
		t.Skip("assertions are on")
	}
	n := 12345
	if a := testing.AllocsPerRun(100, func() { n++; invariants.Assert(n > 0, "n=%d", n) }); a != 0 {
		t.Fatalf("%v allocations", a)
	}
}
