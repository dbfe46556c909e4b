package harness

import "testing"

func TestProcessorTimes(t *testing.T) {
	const text = "cpu  100 2 30 400 5 6 7 50 8 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	if stolen, all, ok := parseProcessorTimes(text); !ok || stolen != 50 || all != 600 {
		t.Errorf("%d of %d, %v", stolen, all, ok)
	}
	for _, bad := range []string{"", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a 2 3 4 5 6 7 8"} {
		if _, _, ok := parseProcessorTimes(bad); ok {
			t.Errorf("%q is taken for the times", bad)
		}
	}
	before, all, ok := processorTimes()
	if !ok || before > all || all == 0 {
		t.Errorf("here: %d of %d, %v", before, all, ok)
	}
}
