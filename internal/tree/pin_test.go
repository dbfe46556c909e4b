package tree

import "testing"

// pins is a Pins that takes so much.
type pins struct{ most, taken int64 }

func (p *pins) Pin(n int64) bool {
	if p.taken+n > p.most {
		return false
	}
	p.taken += n
	return true
}

func (p *pins) Unpin(n int64) { p.taken -= n }

// TestPinsCountOnce: a memtable counts while anybody has pinned it, and lives until all have let go.
func TestPinsCountOnce(t *testing.T) {
	freed := false
	m := &Memory{Buf: make([]byte, 100), free: func(*Memory) { freed = true }}
	m.Ref()
	p := &pins{most: 150}
	if !m.Pin(p) || !m.Pin(p) || p.taken != 100 {
		t.Fatalf("two pins: %d bytes", p.taken)
	}
	other := &Memory{Buf: make([]byte, 100)}
	if other.Pin(p) || p.taken != 100 {
		t.Fatalf("what is too much: %d bytes", p.taken)
	}
	m.Unref()
	m.Unpin(p)
	if p.taken != 100 || freed {
		t.Fatalf("one pin is left: %d bytes, freed %v", p.taken, freed)
	}
	m.Unpin(p)
	if p.taken != 0 || !freed {
		t.Fatalf("none is left: %d bytes, freed %v", p.taken, freed)
	}
}
