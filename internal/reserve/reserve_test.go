package reserve

import (
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestSpace(t *testing.T) {
	m := memfs.New()
	m.MkdirAll("d")
	m.SetCapacity(1 << 20)
	s := New(m, "d/RESERVE")
	if s.Release() {
		t.Error("released what was never held")
	}
	if err := s.Hold(300_000); err != nil {
		t.Fatal(err)
	}
	before := m.Used()
	if err := s.Hold(2 << 20); !vfs.IsNoSpace(err) {
		t.Errorf("more than the disk has: %v", err)
	}
	if m.Used() != before || before < 300_000 {
		t.Errorf("%d bytes held, %d after a failure", before, m.Used())
	}
	if err := s.Hold(100_000); err != nil || m.Used() != before {
		t.Errorf("less than is held: %v, %d bytes", err, m.Used())
	}
	if err := s.Hold(600_000); err != nil || m.Used() < 600_000 {
		t.Errorf("more: %v, %d bytes", err, m.Used())
	}
	if !New(m, "d/RESERVE").Release() || m.Used() >= 100_000 {
		t.Errorf("%d bytes left", m.Used())
	}
}
