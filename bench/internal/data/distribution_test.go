package data

import (
	"math"
	"slices"
	"testing"
)

// counts draws from a distribution and counts each number.
func counts(t *testing.T, dist Distribution, n, draws int, theta float64, seed uint64) []int {
	t.Helper()
	c, err := NewChooser(dist, n, theta, seed, 9)
	if err != nil {
		t.Fatal(err)
	}
	hits := make([]int, n)
	for _, i := range c.Draw(draws) {
		hits[i]++ // out of range would panic
	}
	return hits
}

func TestSequentialAndUniform(t *testing.T) {
	for i, hit := range counts(t, Sequential, 100, 1000, 0, 1) {
		if hit != 10 {
			t.Errorf("sequential: %d drawn %d times, want 10", i, hit)
		}
	}
	for i, hit := range counts(t, Uniform, 100, 100_000, 0, 1) {
		if hit < 850 || hit > 1150 {
			t.Errorf("uniform: %d drawn %d times of about 1000", i, hit)
		}
	}
}

// The share of each rank is that of the definition, for any theta.
func TestZipfHasItsShape(t *testing.T) {
	const n, draws = 1000, 200_000
	for _, theta := range []float64{0, 0.5, 0.99, 1, 1.4} {
		sum := 0.0
		for i := range n {
			sum += math.Pow(float64(i+1), -theta)
		}
		hits := counts(t, Zipf, n, draws, theta, 3)
		for _, rank := range []int{0, 1, 9, 99} {
			want := draws * math.Pow(float64(rank+1), -theta) / sum
			if got := float64(hits[rank]); math.Abs(got-want) > 5*math.Sqrt(want)+1 {
				t.Errorf("theta %v: rank %d drawn %v times, want about %.0f", theta, rank, got, want)
			}
		}
	}
}

func TestLatestIsZipfFromTheEnd(t *testing.T) {
	z, l := counts(t, Zipf, 500, 50_000, 0.99, 4), counts(t, Latest, 500, 50_000, 0.99, 4)
	slices.Reverse(l)
	if !slices.Equal(z, l) {
		t.Error("latest is not Zipf counted from the last")
	}
	if z[0] < 10*z[100] {
		t.Errorf("no skew: %d and %d", z[0], z[100])
	}
}

// Scrambled has the frequencies of Zipf, and the popular ones are not neighbours.
func TestScrambledIsZipfElsewhere(t *testing.T) {
	const n = 1000
	z, s := counts(t, Zipf, n, 100_000, 0.99, 5), counts(t, Scrambled, n, 100_000, 0.99, 5)
	popular := 0
	for i, hit := range s {
		if hit > z[20] && i < n/10 {
			popular++
		}
	}
	if popular > 10 {
		t.Errorf("%d of the 20 most popular are in the first tenth", popular)
	}
	slices.Sort(z)
	slices.Sort(s)
	if !slices.Equal(z, s) {
		t.Error("scrambling changes the frequencies")
	}
}

func TestChoosersRepeatAndDiffer(t *testing.T) {
	for _, dist := range Distributions {
		a, b := counts(t, dist, 50, 500, 0.99, 1), counts(t, dist, 50, 500, 0.99, 1)
		if !slices.Equal(a, b) {
			t.Errorf("%s: the same seed gives other draws", dist)
		}
		if dist != Sequential && slices.Equal(a, counts(t, dist, 50, 500, 0.99, 2)) {
			t.Errorf("%s: another seed gives the same draws", dist)
		}
	}
	for _, bad := range []struct {
		dist  Distribution
		n     int
		theta float64
	}{{"normal", 5, 1}, {Uniform, 0, 1}, {Zipf, 5, -1}, {Zipf, 5, math.NaN()}} {
		if _, err := NewChooser(bad.dist, bad.n, bad.theta, 1, 1); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
