package prefetch

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Lines changes nothing, whatever it is given: nothing, a byte, what begins and ends anywhere in a line.
func TestLines(t *testing.T) {
	b := bytes.Repeat([]byte{7}, 512)
	Lines(nil)
	for from := range 130 {
		for n := range 300 {
			Lines(b[from : from+n])
		}
	}
	if !bytes.Equal(b, bytes.Repeat([]byte{7}, 512)) {
		t.Error("memory has changed")
	}
}

// A walk has every row brought once, before it comes there, but for the one it begins with and those it leaps
// over, and not more of them ahead than are to be; whether it asks at each row or when it is due.
func TestAhead(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var a Ahead
	for range 2000 {
		n, size, always := rng.IntN(100), rng.IntN(8<<10), rng.IntN(2) == 0
		row := rng.IntN(n + 1)
		a.Begin(row)
		brought := row + 1 // up to here
		most := firstRows
		for row++; row <= n; row++ {
			if rng.IntN(10) == 0 {
				row = min(row+rng.IntN(30), n)
			}
			if !always && !a.Due(row) {
				if brought < min(row+2, n) {
					t.Fatalf("row %d of %d: not due, and those before %d are brought", row, n, brought)
				}
				continue
			}
			from, to := a.Next(row, n)
			switch {
			case from != min(max(brought, row), n) || to < from || to > n:
				t.Fatalf("row %d of %d: rows %d to %d, after those before %d", row, n, from, to, brought)
			case to > from && to-row-1 > most:
				t.Fatalf("row %d of %d: rows up to %d, more than %d ahead", row, n, to, most)
			case row+1 < n && to < row+2:
				t.Fatalf("row %d of %d: the next row is not brought", row, n)
			}
			brought = max(brought, to)
			a.Took(size)
			most = min(2*most, max(1, min(mostRows, aheadBytes/max(size, 1))))
		}
	}
}

// Who does not begin a walk, or comes back from far ahead, has rows brought as well.
func TestAheadWithoutBegin(t *testing.T) {
	var a Ahead
	for _, first := range []int{40, 3} {
		brought := first
		for row := first; row < first+50; row++ {
			if !a.Due(row) {
				continue
			}
			from, to := a.Next(row, 100)
			if from > brought || to < row+2 {
				t.Fatalf("row %d: rows %d to %d, after those before %d", row, from, to, brought)
			}
			brought = to
		}
	}
}

// sum reads all of b as who compares or copies it does, a word at a time.
func sum(b []byte) (s uint64) {
	for ; len(b) >= 8; b = b[8:] {
		s += uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	}
	return s
}

var kept uint64

// Values of 1 KB that lie anywhere in 64 MiB, with and without.
func BenchmarkScattered(b *testing.B) {
	const size, values = 1 << 10, 64 << 10
	memory := make([]byte, size*values)
	for i := range memory {
		memory[i] = byte(i)
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(values)
	value := func(i int) []byte { return memory[order[i%values]*size:][:size] }
	b.Run("as it comes", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			kept += sum(value(i))
		}
	})
	b.Run("ahead", func(b *testing.B) {
		var a Ahead
		for i := 0; b.Loop(); i++ {
			if i%values == 0 {
				a.Begin(0)
			}
			if a.Due(i % values) {
				from, to := a.Next(i%values, values)
				for k := from; k < to; k++ {
					Lines(value(k))
					a.Took(size)
				}
			}
			kept += sum(value(i))
		}
	})
}
