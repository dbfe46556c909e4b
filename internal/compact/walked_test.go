package compact

import "testing"

func TestWalked(t *testing.T) {
	const row = walkedBytes
	var w Walked
	if w.Note(leastWalked-1) || w.Any() || w.PayFor(0, 1e9) {
		t.Error("too few rows are worth something")
	}
	if !w.Note(1) || !w.Any() || !w.PayFor(leastWalked*row, 1e9) || w.PayFor((leastWalked+1)*row, 1e9) {
		t.Error("so many rows pay for as many times the bytes of one, no less and no more")
	}
	if w.Note(1) || !w.Note(leastWalked) {
		t.Error("it is looked once for each so many rows")
	}
	w.Spend(leastWalked * row)
	if w.PayFor((leastWalked+2)*row, 1e9) || !w.PayFor((leastWalked+1)*row, 1e9) {
		t.Error("what was spent is gone, and no more")
	}
	w.Note(100 * leastWalked)
	if held := int64(2 * leastWalked * row); !w.PayFor(2*held, held) || w.PayFor(2*held+row, 1e9) {
		t.Error("they are worth two merges of everything at most, and stay so")
	}
}
