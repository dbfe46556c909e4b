package tablefiles

import (
	"testing"

	"github.com/cairndb/cairn/internal/arena"
)

// TestHaste: the last level is compressed in haste only where it has a codec of its own, and
// what is in tables fits into half of the memory decoded.
func TestHaste(t *testing.T) {
	const memory = 64 << 20
	for _, c := range []struct {
		profile     Profile
		raw         int64
		hurry       bool
		quick, well bool
	}{
		{ProfileBalanced, memory / 2, false, true, true},
		{ProfileBalanced, memory / 2, true, true, false},
		{ProfileBalanced, memory/2 + 1, false, false, true},
		{ProfileBalanced, memory/2 + 1, true, false, true},
		{ProfileFast, 0, false, false, false},
		{ProfileSmall, 0, true, false, false},
		{ProfileNone, 0, false, false, false},
	} {
		f := &Files{Profile: c.profile, Budget: arena.NewBudget(memory), Raw: func() int64 { return c.raw }}
		if c.hurry {
			f.Hurry()
		}
		if quick, well := f.HasQuick(), f.CompressesWell(); quick != c.quick || well != c.well {
			t.Errorf("profile %d, %d bytes in tables, hurry %v: quick %v, well %v", c.profile, c.raw, c.hurry, quick, well)
		}
	}
}

// TestHasty: what rests is compressed in haste at first, and what somebody waits for when the store
// is closed; nothing where there is no haste.
func TestHasty(t *testing.T) {
	f := &Files{Budget: arena.NewBudget(1 << 20), Raw: func() int64 { return 0 }}
	want := func(f *Files, quick, beside, idle, awaited bool) {
		t.Helper()
		for effort, want := range map[Effort]bool{Quick: quick, Beside: beside, Idle: idle, Awaited: awaited} {
			if got := f.Hasty(effort); got != want {
				t.Errorf("effort %d: %v", effort, got)
			}
			if alone := effort.Alone(); f.Hasty(alone) != want || alone == Idle || alone == Awaited {
				t.Errorf("effort %d of one processor: %d", effort, alone)
			}
		}
	}
	want(f, true, false, true, false)
	want(&Files{Profile: ProfileSmall, Budget: f.Budget, Raw: f.Raw}, false, false, false, false)
	f.Hurry()
	want(f, true, true, true, true)
}

// TestGivesWay: what somebody waits for does not give way: a flush as long as commits have to wait for it.
func TestGivesWay(t *testing.T) {
	pressed := false
	f := &Files{Pressed: func() bool { return pressed }}
	flush := f.givesWay(Flush)
	for range 2 {
		if flush() == pressed || !f.givesWay(Beside)() || !f.givesWay(Quick)() || !f.givesWay(Idle)() || f.givesWay(Awaited) != nil {
			t.Errorf("pressed %v: a flush gives way: %v", pressed, flush())
		}
		pressed = !pressed
	}
	if !new(Files).givesWay(Flush)() {
		t.Error("a flush takes a processor that others want")
	}
	if f.Hurry(); f.givesWay(Flush) != nil {
		t.Error("what Close waits for gives way")
	}
}
