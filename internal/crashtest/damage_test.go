package crashtest

import (
	"flag"
	"fmt"
	"iter"
	"path"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/vfs/memfs"
)

var sample = flag.Int("crash.sample", 1, "suffer only one in so many damages")

// fill gives a store tables on two levels, range deletes, a large transaction and,
// unless it is closed, commits in the log.
func fill(r *Run) {
	r.Open()
	for i := range 6 {
		r.Commit(step(r, i, 600)...)
	}
	r.Compact("a", "zz")
	ops := []Op{DeleteRange("k/0001", "k/0003")}
	for i := range 9 {
		ops = append(ops, r.Put(fmt.Sprintf("large/%02d", i), 8000))
	}
	r.Commit(ops...)
	r.Commit(DeleteRange("large/02", "large/04"))
	r.Commit(step(r, 10, 300)...)
	r.Compact("zz", "zzz")
	for i := range 8 {
		r.Commit(step(r, 20+i, 800)...)
	}
}

func patients(t *testing.T) (closed, killed *Patient, other *Run) {
	make := func(seed uint64) *Run {
		r := NewRun(&Workload{}, seed)
		fill(r)
		return r
	}
	r := make(1)
	killed = NewPatient(r, false)
	r.Close()
	closed = NewPatient(r, true)
	other = make(2)
	if r.err != nil || other.err != nil {
		t.Fatal(r.err, other.err)
	}
	return closed, killed, other
}

// relaxedPatient is a store closed whose manifest has recorded no log segment but such that were not synced then.
func relaxedPatient(t *testing.T) *Patient {
	r := NewRun(&Workload{Relaxed: true, Mapped: true}, 1)
	r.Open()
	for i := range 6 {
		r.Commit(step(r, i, 600)...)
	}
	r.Close()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return NewPatient(r, true)
}

// some yields one in -crash.sample of all.
func some(all iter.Seq[Damage]) iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		n := 0
		for d := range all {
			if n++; n%*sample == 0 && !yield(d) {
				return
			}
		}
	}
}

func suffer(t *testing.T, p *Patient, all iter.Seq[Damage]) {
	t.Helper()
	var counts [outcomes]int
	n := 0
	for d := range all {
		o, err := p.Suffer(d, n%4 == 3)
		if err != nil {
			t.Error(err)
			if t.Failed() && n > 20 {
				t.FailNow()
			}
		}
		counts[o]++
		n++
	}
	s := ""
	for o, c := range counts {
		s += fmt.Sprintf(", %d %v", c, Outcome(o))
	}
	t.Logf("%d damages%s", n, s)
	if n > 0 && counts[Refused]+counts[Detected] == 0 {
		t.Error("nothing was detected")
	}
}

// TestFlips damages every byte.
func TestFlips(t *testing.T) {
	closed, killed, _ := patients(t)
	t.Logf("closed: %d bytes; killed: %d bytes", size(closed), size(killed))
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		suffer(t, closed, some(closed.Flips(func(string, []byte, int) bool { return true })))
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		// Tables are the same as in a closed store: a part of their bytes will do.
		suffer(t, killed, some(killed.Flips(func(name string, b []byte, off int) bool {
			step := 1
			if kindOf(name) == base.FileTable {
				step = 16
			} else if unused(b, off) {
				step = 64
			}
			return *longFlag > 0 || off%step == 0
		})))
	})
}

func size(p *Patient) (n int) {
	for _, name := range p.Image.Files() {
		b, _ := p.Image.ReadFile(name)
		n += len(b)
	}
	return n
}

// unused reports whether off lies deep in space that was only reserved.
func unused(b []byte, off int) bool {
	for _, v := range b[max(0, off-256):min(len(b), off+256)] {
		if v != 0 {
			return false
		}
	}
	return true
}

// TestOtherDamage cuts, removes, exchanges and replaces files.
func TestOtherDamage(t *testing.T) {
	closed, killed, other := patients(t)
	cuts := func(b []byte, n int) bool {
		return *longFlag > 0 || n%8 == 0 && !unused(b, n) || n%509 == 0 || n%4096 == 0
	}
	foreign := NewPatient(other, false).Image
	other.Close()
	foreignClosed := NewPatient(other, true).Image
	for name, p := range map[string]*Patient{"closed": closed, "killed": killed, "closed, relaxed": relaxedPatient(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("cut", func(t *testing.T) { suffer(t, p, some(p.Cuts(cuts))) })
			t.Run("sectors", func(t *testing.T) { suffer(t, p, some(p.Sectors())) })
			t.Run("removed", func(t *testing.T) { suffer(t, p, p.Deletions()) })
			t.Run("exchanged", func(t *testing.T) { suffer(t, p, p.Exchanges()) })
			t.Run("foreign", func(t *testing.T) { suffer(t, p, p.Foreign(foreign)) })
			t.Run("foreign closed", func(t *testing.T) { suffer(t, p, p.Foreign(foreignClosed)) })
		})
	}
}

// liveFiles returns the names of the files with a header that the manifest names.
func liveFiles(t *testing.T, p *Patient) map[string]bool {
	s, err := manifest.Recover(p.Image, Dir, true)
	if err != nil {
		t.Fatal(err)
	}
	live := map[string]bool{base.FileName(base.FileManifest, s.Manifest): true}
	for _, seg := range s.Segments {
		live[base.FileName(base.FileLog, seg.Num)] = true
	}
	for _, meta := range s.Version.Tables() {
		live[base.FileName(base.FileTable, meta.Num)] = true
	}
	return live
}

// TestForgedHeaders gives files headers of another identity, checksums included:
// what the rest of the file is bound to must not matter.
func TestForgedHeaders(t *testing.T) {
	closed, killed, _ := patients(t)
	for _, p := range []*Patient{closed, killed} {
		live := liveFiles(t, p)
		for _, name := range p.Image.Files() {
			if !live[path.Base(name)] {
				continue
			}
			b, _ := p.Image.ReadFile(name)
			h, err := base.DecodeFileHeader(b, kindOf(name), name)
			if err != nil {
				t.Fatal(err)
			}
			for what, forge := range map[string]func(h *base.FileHeader){
				"file id": func(h *base.FileHeader) { h.File = base.NewID() },
				"store":   func(h *base.FileHeader) { h.Store = base.NewID() },
				"number":  func(h *base.FileHeader) { h.Num++ },
			} {
				forged := h
				forge(&forged)
				changed := append(base.AppendFileHeader(nil, forged), b[base.FileHeaderBytes:]...)
				o, err := p.Suffer(Damage{What: name + ": other " + what, Do: func(f *memfs.FS) error { return f.WriteFile(name, changed) }}, false)
				if o != Refused || err != nil {
					t.Errorf("%s with another %s: %v %v", name, what, o, err)
				}
			}
		}
	}
}
