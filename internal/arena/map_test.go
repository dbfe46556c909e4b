package arena

import (
	"testing"
)

func allZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

func TestMapGivesZeroedWholePages(t *testing.T) {
	noLeak(t)
	for _, n := range []int{1, pageBytes, pageBytes + 1, HugeBytes - 1, HugeBytes, 5*HugeBytes + 12345} {
		before := Mapped()
		b, err := Map(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != roundUp(n, pageBytes) || cap(b) != len(b) || !allZero(b) {
			t.Errorf("Map(%d): len %d, cap %d", n, len(b), cap(b))
		}
		if Mapped()-before != int64(len(b)) {
			t.Errorf("Map(%d) counted %d bytes", n, Mapped()-before)
		}
		b[0], b[len(b)-1] = 1, 2
		if err := Unmap(b[:0]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMapRefusesNonsense(t *testing.T) {
	noLeak(t)
	for _, n := range []int{0, -1, int(^uint(0) >> 1)} {
		if _, err := Map(n); err == nil {
			t.Errorf("Map(%d) succeeded", n)
		}
	}
	for _, b := range [][]byte{nil, make([]byte, 5)} {
		if err := Unmap(b); err == nil {
			t.Errorf("Unmap of %d bytes of Go heap succeeded", len(b))
		}
	}
}

func TestReleaseZeroesExactlyItsPages(t *testing.T) {
	noLeak(t)
	b, err := Map(8 * pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	for i := range b {
		b[i] = 9
	}
	Release(b[2*pageBytes : 5*pageBytes])
	if !allZero(b[2*pageBytes : 5*pageBytes]) {
		t.Error("released pages still hold something")
	}
	for _, i := range []int{0, 2*pageBytes - 1, 5 * pageBytes, 8*pageBytes - 1} {
		if b[i] != 9 {
			t.Errorf("byte %d was released with its neighbour", i)
		}
	}
	b[3*pageBytes] = 1
}

// Less than a page cannot go back to the system: it is cleared, and no more.
func TestReleaseOfPartOfAPage(t *testing.T) {
	noLeak(t)
	b, err := Map(pageBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	b[9], b[10] = 1, 1
	if Release(b[:10]) {
		t.Error("ten bytes went back to the system")
	}
	if b[9] != 0 || b[10] != 1 {
		t.Errorf("bytes 9 and 10 are %d and %d", b[9], b[10])
	}
	if Release(nil) {
		t.Error("nothing went back to the system")
	}
}

// Touching memory changes nothing but that it is there, and may be done while it is used.
func TestTouch(t *testing.T) {
	noLeak(t)
	b, err := Map(2 * HugeBytes)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	AdviseHuge(b)
	b[5], b[HugeBytes+7] = 5, 7
	done := make(chan struct{})
	go func() { Touch(b[HugeBytes:]); Touch(b); Touch(nil); close(done) }()
	for i := range pageBytes {
		b[pageBytes+i] = byte(i)
	}
	<-done
	for i := range pageBytes {
		if b[pageBytes+i] != byte(i) {
			t.Fatalf("byte %d has changed", i)
		}
	}
	if b[5] != 5 || b[HugeBytes+7] != 7 || !allZero(b[HugeBytes+8:]) {
		t.Error("touching changed the contents")
	}
}

func TestAdviseHugeIsHarmless(t *testing.T) {
	noLeak(t)
	for _, n := range []int{1, 3 * HugeBytes} {
		b, err := Map(n)
		if err != nil {
			t.Fatal(err)
		}
		b[0] = 5
		AdviseHuge(b)
		if b[0] != 5 || !allZero(b[1:]) {
			t.Error("advice changed the contents")
		}
		if err := Unmap(b); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkFirstTouch(b *testing.B) {
	for _, huge := range []bool{false, true} {
		b.Run(map[bool]string{false: "small", true: "huge"}[huge], func(b *testing.B) {
			b.SetBytes(HugeBytes)
			for b.Loop() {
				m, err := Map(HugeBytes)
				if err != nil {
					b.Fatal(err)
				}
				adviseHuge(m, huge)
				clear(m)
				Unmap(m)
			}
		})
	}
}
