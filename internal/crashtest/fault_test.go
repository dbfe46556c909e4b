package crashtest

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"
)

var faultRuns = flag.Int("crash.faults", 250, "runs with a fault per workload; -1: every one")

// TestFaults fails operations of every workload, one kind after the other.
func TestFaults(t *testing.T) {
	total := make(chan [2]int, len(Workloads))
	t.Run("of", func(t *testing.T) {
		for _, w := range Workloads {
			if w.Failing {
				continue
			}
			t.Run(w.Name, func(t *testing.T) {
				t.Parallel()
				total <- faults(t, w)
			})
		}
	})
	close(total)
	runs, all := 0, 0
	for n := range total {
		runs, all = runs+n[0], all+n[1]
	}
	t.Logf("%d runs with a fault, of %d there are", runs, all)
}

func faults(t *testing.T, w *Workload) [2]int {
	counts, err := CountOps(w, *seedFlag)
	if err != nil {
		t.Fatal(err)
	}
	all := allFaults(counts)
	r := rand.New(rand.NewPCG(*seedFlag, 2))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	chosen := all
	if *faultRuns >= 0 && *longFlag == 0 {
		chosen = all[:min(len(all), *faultRuns)]
	}
	start := time.Now()
	for _, f := range chosen {
		if err := RunFault(w, *seedFlag, f); err != nil {
			t.Error(err)
		}
		if t.Failed() && time.Since(start) > time.Minute {
			t.FailNow()
		}
	}
	t.Logf("%d of %d faults, seed %d, %v", len(chosen), len(all), *seedFlag, time.Since(start).Round(time.Millisecond))
	return [2]int{len(chosen), len(all)}
}

func allFaults(counts []int64) (all []Fault) {
	for i, k := range Kinds {
		for at := int64(1); at <= counts[i]; at++ {
			for _, how := range Hows(k) {
				for flags := range 4 {
					all = append(all, Fault{Kind: k, At: at, How: how, Sticky: flags&1 > 0, StayOpen: flags&2 > 0})
				}
			}
		}
	}
	return all
}
