package memfs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/vfs"
)

func mapFile(t *testing.T, f *FS, name string, size int) (vfs.File, []byte, vfs.Mapping) {
	t.Helper()
	h, err := f.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Preallocate(0, int64(size)); err != nil {
		t.Fatal(err)
	}
	m, err := h.(vfs.Mapper).Map(0, size)
	if err != nil {
		t.Fatal(err)
	}
	return h, m.Bytes(), m
}

// What is stored in a mapping is in the file, and the other way round.
func TestMappingShowsTheFile(t *testing.T) {
	f := New()
	f.AllowMaps()
	before := arena.Mapped()
	h, b, m := mapFile(t, f, "f", 3*chunkBytes)
	copy(b[chunkBytes-2:], "stored")
	got := make([]byte, 6)
	if _, err := h.ReadAt(got, chunkBytes-2); err != nil || string(got) != "stored" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := h.WriteAt([]byte("written"), chunkBytes); err != nil || string(b[chunkBytes-2:][:9]) != "stwritten" {
		t.Errorf("%q, %v", b[chunkBytes-2:][:9], err)
	}
	copy(b, "more")
	if err := f.Corrupt("f", 1, 'o'^'0'); err != nil || string(b[:4]) != "m0re" {
		t.Errorf("%q, %v", b[:4], err)
	}
	if err := f.Remove("f"); err != nil {
		t.Error(err)
	}
	copy(b[2*chunkBytes:], "nameless")
	if err := errors.Join(h.Close(), m.Unmap()); err != nil {
		t.Error(err)
	}
	if f.Used() != 0 || arena.Mapped() != before {
		t.Errorf("%d bytes of the disk are used, %d of memory mapped", f.Used(), arena.Mapped()-before)
	}
}

// A power cut may lose each page that was stored since the last sync, and nothing from before.
func TestMappingIsLostByPages(t *testing.T) {
	f := New()
	f.AllowMaps()
	h, b, m := mapFile(t, f, "f", 4*chunkBytes)
	defer m.Unmap()
	copy(b[chunkBytes:], bytes.Repeat([]byte{1}, 2*chunkBytes))
	if err := errors.Join(h.Sync(), f.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	copy(b[chunkBytes:], bytes.Repeat([]byte{2}, 2*chunkBytes))
	at := f.Journal().Len()
	if ops := f.Journal().Pending(at); len(ops) != 2 {
		t.Fatalf("pending: %v", ops)
	}
	copy(b[chunkBytes:], bytes.Repeat([]byte{3}, 2*chunkBytes)) // later
	for choice, want := range map[Choice][2]byte{SyncedOnly(): {1, 1}, KeepOne(0): {2, 1}, KeepOne(1): {1, 2}, Everything(): {2, 2}} {
		got, err := f.Journal().State(at, choice).ReadFile("f")
		if err != nil || got[chunkBytes] != want[0] || got[2*chunkBytes] != want[1] || got[0] != 0 {
			t.Errorf("%v: %d %d, want %v, %v", choice, got[chunkBytes], got[2*chunkBytes], want, err)
		}
	}
}

func TestMapRefuses(t *testing.T) {
	f := New()
	h, err := f.Create("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.(vfs.Mapper).Map(0, 10); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without AllowMaps: %v", err)
	}
	f.AllowMaps()
	for _, n := range []int{0, 1, -1} {
		if _, err := h.(vfs.Mapper).Map(0, n); err == nil {
			t.Errorf("%d bytes of an empty file are mapped", n)
		}
	}
}
