package arena

import (
	"math/rand/v2"
	"testing"
)

// model is the slow twin of frameMap.
type model [maxFrames]bool

func (m *model) set(i, n int, v bool) {
	for ; n > 0; i, n = i+1, n-1 {
		m[i] = v
	}
}

func (m *model) runs() (longest int, fit func(n int) int) {
	length, first := 0, [maxFrames + 1]int{}
	for i := range first {
		first[i] = -1
	}
	for i, v := range m {
		if !v {
			length = 0
			continue
		}
		length++
		longest = max(longest, length)
		for n := length; n > 0 && first[n] < 0; n-- {
			first[n] = i - length + 1
		}
	}
	return longest, func(n int) int { return first[n] }
}

func (m *model) count(i, n int) (sum int) {
	for _, v := range m[i : i+n] {
		if v {
			sum++
		}
	}
	return sum
}

func TestFrameMapAgainstModel(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var m frameMap
	var want model
	for range 3000 {
		i := r.IntN(maxFrames)
		n := r.IntN(min(maxFrames-i, 1+r.IntN(maxFrames)) + 1)
		if r.IntN(2) == 0 {
			m.add(i, n)
			want.set(i, n, true)
		} else {
			m.remove(i, n)
			want.set(i, n, false)
		}
		longest, fit := want.runs()
		if m.longest() != longest || m.count(i, n) != want.count(i, n) || m.count(0, maxFrames) != want.count(0, maxFrames) {
			t.Fatalf("longest %d, want %d; count %d, want %d", m.longest(), longest, m.count(i, n), want.count(i, n))
		}
		if k := 1 + r.IntN(maxFrames); m.fit(k) != fit(k) {
			t.Fatalf("fit(%d) = %d, want %d", k, m.fit(k), fit(k))
		}
	}
}

func TestFrameMapWithout(t *testing.T) {
	var a, b frameMap
	a.add(0, 200)
	b.add(100, 300)
	c := a.without(b)
	if c.count(0, 100) != 100 || c.count(0, maxFrames) != 100 || b.count(0, maxFrames) != 300 {
		t.Fatal("wrong difference, or an operand changed")
	}
}
