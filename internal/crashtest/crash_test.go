package crashtest

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("crash.seed", 1, "seed of the first run of each workload")
	longFlag  = flag.Duration("crash.long", 0, "enumerate for so long, spread over the workloads, instead of up to the target; TestGenerations and TestKilledRecovery: a tenth of it")
	saveFlag  = flag.String("crash.save", "", "directory to keep the files of a failing image in")
	perTarget = flag.Int("crash.images", 2900, "distinct images per workload, a tenth of them nested")
)

// What a plain run has to reach (docs/PROOF.md).
const (
	wantImages   = 50_000
	wantHoles    = 1_000
	wantReused   = 1_000
	wantNested   = 5_000
	wantEach     = 2_000
	wantWorkload = 8
)

// TestCrash enumerates crash images of every workload.
func TestCrash(t *testing.T) {
	totals := make(chan Counts, len(Workloads))
	t.Run("of", func(t *testing.T) {
		for _, w := range Workloads {
			t.Run(w.Name, func(t *testing.T) {
				t.Parallel()
				totals <- crash(t, w)
			})
		}
	})
	close(totals)
	var sum Counts
	for c := range totals {
		sum.Add(c)
	}
	t.Logf("all workloads: %v", sum)
	if *perTarget >= wantEach && (sum.Images < wantImages || sum.Holes < wantHoles || sum.Reused < wantReused || sum.Nested < wantNested || len(Workloads) < wantWorkload) {
		t.Errorf("too few: want %d images, %d of them with holes, %d with a log file used before, %d nested, of %d workloads", wantImages, wantHoles, wantReused, wantNested, wantWorkload)
	}
}

func crash(t *testing.T, w *Workload) Counts {
	e := NewEnumeration(w, *seedFlag)
	start, until := time.Now(), time.Now().Add(*longFlag/time.Duration(len(Workloads)))
	for (*longFlag == 0 && e.Images < *perTarget) || time.Now().Before(until) {
		before := e.Images
		nested := max(*perTarget/8, 100)
		err := e.Run(max(*perTarget-e.Images-nested, 200))
		if err == nil {
			err = e.RunNested(max(nested/40, 1), 1+e.Runs/2%2, nested)
		}
		if err != nil {
			save(t, err)
			t.Fatal(err)
		}
		if e.Images == before {
			t.Fatal("a run added no image")
		}
	}
	t.Logf("%s, seeds %d to %d: %v; %v", w.Name, *seedFlag, *seedFlag+uint64(e.Runs)-1, e.Counts, time.Since(start).Round(time.Millisecond))
	return e.Counts
}

// save writes the files of a failing image to a directory.
func save(t *testing.T, err error) {
	var f *Failure
	if *saveFlag == "" || !errors.As(err, &f) || f.Image == nil {
		return
	}
	for _, name := range f.Image.Files() {
		b, err := f.Image.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(*saveFlag, filepath.Base(name)), b, 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
