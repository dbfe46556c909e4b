package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// Distribution says which of n things is chosen how often.
type Distribution string

// The distributions of YCSB, as its paper describes them: ranks are of the n things. (Its
// client scrambles by drawing of 10,000,000,000 items and hashing these into the n.)
const (
	Sequential Distribution = "sequential" // 0, 1, 2 and round again
	Uniform    Distribution = "uniform"    // each as often as any other
	Zipf       Distribution = "zipf"       // thing i in proportion to 1/(i+1)^theta
	Scrambled  Distribution = "scrambled"  // Zipf, with the popular ones anywhere
	Latest     Distribution = "latest"     // Zipf, with the last the most popular
)

// DefaultTheta is the skew of YCSB.
const DefaultTheta = 0.99

// Distributions lists all of them.
var Distributions = []Distribution{Sequential, Uniform, Zipf, Scrambled, Latest}

// Chooser draws numbers from 0 to n-1. One goroutine uses it.
type Chooser struct {
	dist  Distribution
	n     int
	next  int
	rng   *rand.Rand
	total []float64 // of the weights up to and including each rank
	at    []int32   // where the things of each rank are, if scrambled
}

// NewChooser makes a chooser of n things. Theta, 0 or more, is the skew of the
// Zipfian ones; different purposes give different choices. Drawing is exact, by
// search in the summed weights: meant for draws made before the clock starts.
func NewChooser(dist Distribution, n int, theta float64, seed, purpose uint64) (*Chooser, error) {
	if n < 1 || theta < 0 || math.IsNaN(theta) || math.IsInf(theta, 0) {
		return nil, fmt.Errorf("no distribution over %d things with theta %v", n, theta)
	}
	c := &Chooser{dist: dist, n: n, rng: rand.New(rand.NewPCG(seed, purpose))}
	switch dist {
	case Sequential, Uniform:
	case Zipf, Latest:
		c.total = summedWeights(n, theta)
	case Scrambled:
		c.total = summedWeights(n, theta)
		c.at = Order(n, seed, mix(purpose+1))
	default:
		return nil, fmt.Errorf("no distribution %q", dist)
	}
	return c, nil
}

func summedWeights(n int, theta float64) []float64 {
	total := make([]float64, n)
	sum := 0.0
	for i := range total {
		sum += math.Pow(float64(i+1), -theta)
		total[i] = sum
	}
	return total
}

// Reseed makes the chooser draw from rng; which things are popular stays the same.
func (c *Chooser) Reseed(rng *rand.Rand) { c.rng = rng }

// Next draws a number.
func (c *Chooser) Next() int32 {
	switch c.dist {
	case Sequential:
		c.next++
		return int32((c.next - 1) % c.n)
	case Uniform:
		return int32(c.rng.IntN(c.n))
	case Scrambled:
		return c.at[c.rank()]
	case Latest:
		return int32(c.n-1) - c.rank()
	}
	return c.rank()
}

func (c *Chooser) rank() int32 {
	u := c.rng.Float64() * c.total[c.n-1]
	return int32(min(sort.SearchFloat64s(c.total, u), c.n-1))
}

// Skip leaves count numbers out.
func (c *Chooser) Skip(count int) {
	for range count {
		c.Next()
	}
}

// Draw returns count numbers.
func (c *Chooser) Draw(count int) []int32 {
	drawn := make([]int32, count)
	for i := range drawn {
		drawn[i] = c.Next()
	}
	return drawn
}
