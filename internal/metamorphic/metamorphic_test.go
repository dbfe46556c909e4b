package metamorphic

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"
	"time"
)

var (
	fromSeed = flag.Uint64("metamorphic.seed", 0, "the first seed; 0 draws one")
	plans    = flag.Int("metamorphic.plans", 20, "how many seeds, one after the other")
	calls    = flag.Int("metamorphic.calls", 10_000, "calls of each plan, about")
	lasting  = flag.Duration("metamorphic.long", 0, "go on with further seeds for so long")
	shrinks  = flag.Duration("metamorphic.shrink", 0, "how long a plan that fails is made shorter")
)

// plan is what a run does.
type plan struct {
	seed   uint64 // of the options
	rounds []round
}

type round struct {
	seed  uint64
	steps [][]uint64 // of each actor
}

// newPlan makes a plan of about n calls.
func newPlan(seed uint64, n int) plan {
	r := rand.New(rand.NewPCG(seed, 3))
	actors := 1
	if r.IntN(2) == 0 {
		actors = 2 + r.IntN(3)
	}
	p := plan{seed: r.Uint64()}
	for n > 0 {
		ro := round{seed: r.Uint64(), steps: make([][]uint64, actors)}
		each := 1 + r.IntN(1+r.IntN(1500))
		for i := range ro.steps {
			for range each {
				ro.steps[i] = append(ro.steps[i], r.Uint64())
			}
		}
		n -= each * actors
		p.rounds = append(p.rounds, ro)
	}
	return p
}

func (p plan) len() (n int) {
	for _, ro := range p.rounds {
		for _, s := range ro.steps {
			n += len(s)
		}
	}
	return n
}

// TestMetamorphic: whatever the API is used for, in whatever order, on whatever disk, it
// does what it says.
func TestMetamorphic(t *testing.T) {
	seed := *fromSeed
	if seed == 0 {
		seed = rand.Uint64() >> 24
	}
	n := *plans
	if testing.Short() {
		n /= 5
	}
	c := &counts{}
	start := time.Now()
	for i := 0; i < n || time.Since(start) < *lasting; i++ {
		p := newPlan(seed, *calls)
		opts, err := watched(seed, p, c, nil)
		if err != nil {
			t.Errorf("-metamorphic.seed=%d -metamorphic.plans=1 -metamorphic.calls=%d repeats this (%s): %v", seed, *calls, opts, err)
			shrink(t, seed, p)
			return
		}
		seed++
	}
	if refused := c.alone.Load(); refused > 0 {
		t.Logf("NOT TESTED in %d plans: readers beside a writer, which the file system of %s does not allow", refused, os.TempDir())
	}
	t.Logf("%v in %v; the last seed was %d", c, time.Since(start).Round(time.Second), seed-1)
}

// watched runs a plan made of seed, and ends the process with all stacks if it hangs.
func watched(seed uint64, p plan, c *counts, traced func(string, ...any)) (string, error) {
	dog := time.AfterFunc(10*time.Minute, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d hangs", seed))
	})
	defer dog.Stop()
	return run(p, c, traced)
}

// shrink leaves out of a plan what it does not need to fail.
func shrink(t *testing.T, seed uint64, p plan) {
	end := time.Now().Add(*shrinks)
	fails := func(p plan) bool {
		for range 3 { // some failures are not repeated each time
			if time.Now().After(end) {
				return false
			}
			if opts, err := watched(seed, p, &counts{}, nil); err != nil {
				t.Logf("%d rounds, %d calls (%s): %v", len(p.rounds), p.len(), opts, err)
				return true
			}
		}
		return false
	}
	for piece := len(p.rounds) / 2; piece > 0; piece /= 2 {
		for from := 0; from+piece <= len(p.rounds) && len(p.rounds) > piece; {
			less := plan{p.seed, append(append([]round(nil), p.rounds[:from]...), p.rounds[from+piece:]...)}
			if fails(less) {
				p = less
			} else {
				from += piece
			}
		}
	}
	for i := range p.rounds {
		for a := range p.rounds[i].steps {
			for piece := (len(p.rounds[i].steps[a]) + 1) / 2; piece > 0; piece /= 2 {
				for from := 0; from+piece <= len(p.rounds[i].steps[a]); {
					less := p.without(i, a, from, piece)
					if fails(less) {
						p = less
					} else {
						from += piece
					}
				}
			}
		}
	}
	traced(t, seed, p)
}

// traced runs a plan once more and says what it does.
func traced(t *testing.T, seed uint64, p plan) {
	if p.len() > 0 && p.len() <= 40 {
		_, err := watched(seed, p, &counts{}, t.Logf)
		t.Logf("that is: %v", err)
	}
}

// without returns the plan without n steps of an actor in a round.
func (p plan) without(i, actor, from, n int) plan {
	less := plan{p.seed, append([]round(nil), p.rounds...)}
	steps := append([][]uint64(nil), p.rounds[i].steps...)
	steps[actor] = append(append([]uint64(nil), steps[actor][:from]...), steps[actor][from+n:]...)
	less.rounds[i].steps = steps
	return less
}
