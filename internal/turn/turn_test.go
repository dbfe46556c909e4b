package turn

import "testing"

// What was told to a goroutine whose work was done without it is not heard by the next.
func TestRenew(t *testing.T) {
	var w Wait
	w.Tell(true) // nobody waits
	w.Prepare()
	w.Tell(false)
	w.Tell(true)
	if w.Block() {
		t.Error("told that it was its turn, heard that it was done")
	}
	w.Renew()
	w.Tell(false)
	if w.Block() {
		t.Error("heard what had been told before Renew")
	}
}
