package crashtest

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Damage is one thing that may happen to the files of a store at rest.
type Damage struct {
	What   string
	Do     func(fsys *memfs.FS) error
	Single bool // one byte is affected: it can cost no more than one commit
}

// Outcome is how a store took a Damage.
type Outcome int

// The outcomes that are allowed.
const (
	Refused   Outcome = iota // Open failed with a typed error
	Detected                 // a read, or Verify, failed with a typed error; what was read was right
	Identical                // nothing is different
	Shorter                  // not cleanly closed: the last commit is gone, and reported
	outcomes
)

func (o Outcome) String() string {
	return [...]string{"refused", "detected", "identical", "shorter and reported"}[o]
}

// Patient is a store at rest, with what it holds.
type Patient struct {
	Image   *memfs.FS
	History *History
	Closed  bool // it was closed; else its process died
	pairs   []Pair
}

// NewPatient takes the files that are on r's disk now.
func NewPatient(r *Run, closed bool) *Patient {
	r.History.order()
	p := &Patient{Image: r.Disk.Clone(), History: r.History, Closed: closed}
	p.Image.StopJournal()
	p.pairs = r.History.state(len(r.History.sorted), nil)
	return p
}

// Flips yields one damage for each byte of each file; keep picks among them.
func (p *Patient) Flips(keep func(file string, b []byte, off int) bool) iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		for _, name := range p.Image.Files() {
			b, _ := p.Image.ReadFile(name)
			for off := range b {
				xor := byte(1 << (off % 8))
				if off%3 == 0 {
					xor = 0xFF
				}
				d := Damage{fmt.Sprintf("%s: byte %d of %d xor %#x", path.Base(name), off, len(b), xor),
					func(f *memfs.FS) error { return f.Corrupt(name, int64(off), xor) }, true}
				if keep(name, b, off) && !yield(d) {
					return
				}
			}
		}
	}
}

// Cuts yields the truncations of each file to the lengths that keep picks.
func (p *Patient) Cuts(keep func(b []byte, n int) bool) iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		for _, name := range p.Image.Files() {
			b, _ := p.Image.ReadFile(name)
			for n := range b {
				d := Damage{What: fmt.Sprintf("%s: cut to %d of %d bytes", path.Base(name), n, len(b)),
					Do: func(f *memfs.FS) error { return f.Truncate(name, int64(n)) }}
				if keep(b, n) && !yield(d) {
					return
				}
			}
		}
	}
}

// Deletions yields the removal of each file, and its replacement by nothing.
func (p *Patient) Deletions() iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		for _, name := range p.Image.Files() {
			if !yield(Damage{What: path.Base(name) + ": removed", Do: func(f *memfs.FS) error { return f.Remove(name) }}) {
				return
			}
		}
	}
}

// Sectors yields, for each aligned 512 bytes, damage of whole sectors: zeroed, set,
// and replaced by the next sector.
func (p *Patient) Sectors() iter.Seq[Damage] {
	const n = 512
	return func(yield func(Damage) bool) {
		for _, name := range p.Image.Files() {
			b, _ := p.Image.ReadFile(name)
			for off := 0; off < len(b); off += n {
				next := min(off+n, len(b))
				for what, sector := range map[string][]byte{
					"zeroed": make([]byte, n), "set": slices.Repeat([]byte{0xFF}, n), "replaced by the next": b[next:min(next+n, len(b))],
				} {
					changed := slices.Clone(b)
					copy(changed[off:next], sector)
					d := Damage{What: fmt.Sprintf("%s: sector at %d %s", path.Base(name), off, what),
						Do: func(f *memfs.FS) error { return f.WriteFile(name, changed) }}
					if !yield(d) {
						return
					}
				}
			}
		}
	}
}

// Exchanges yields the swap of any two files of a kind, and each file put in the
// place of another.
func (p *Patient) Exchanges() iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		files := p.Image.Files()
		for i, a := range files {
			for _, b := range files[i+1:] {
				if kindOf(a) != kindOf(b) {
					continue
				}
				ab, _ := p.Image.ReadFile(a)
				bb, _ := p.Image.ReadFile(b)
				for _, d := range []Damage{
					{What: "exchanged", Do: func(f *memfs.FS) error { return errors.Join(f.WriteFile(a, bb), f.WriteFile(b, ab)) }},
					{What: "second in place of first", Do: func(f *memfs.FS) error { return f.WriteFile(a, bb) }},
					{What: "first in place of second", Do: func(f *memfs.FS) error { return f.WriteFile(b, ab) }},
				} {
					if !yield(Damage{What: fmt.Sprintf("%s and %s: %s", path.Base(a), path.Base(b), d.What), Do: d.Do}) {
						return
					}
				}
			}
		}
	}
}

func kindOf(name string) base.FileType {
	t, _ := base.ParseFileName(path.Base(name))
	return t
}

// Foreign yields each file replaced by each file of its kind of another store.
func (p *Patient) Foreign(other *memfs.FS) iter.Seq[Damage] {
	return func(yield func(Damage) bool) {
		for _, a := range p.Image.Files() {
			for _, b := range other.Files() {
				bb, _ := other.ReadFile(b)
				mine, _ := p.Image.ReadFile(a)
				if kindOf(a) != kindOf(b) || string(bb) == string(mine) {
					continue
				}
				d := Damage{What: fmt.Sprintf("%s replaced by %s of another store", path.Base(a), path.Base(b)),
					Do: func(f *memfs.FS) error { return f.WriteFile(a, bb) }}
				if !yield(d) {
					return
				}
			}
		}
	}
}

// Suffer does d to a copy of the store, opens it and says how it took it, or what
// promise it broke.
func (p *Patient) Suffer(d Damage, readOnly bool) (Outcome, error) {
	image := p.Image.Clone()
	image.StopJournal()
	if err := d.Do(image); err != nil {
		return 0, fmt.Errorf("%s: %w", d.What, err)
	}
	s, err := p.open(image, readOnly)
	if err != nil {
		return Refused, p.typed(d, "open", err)
	}
	o, err := p.read(s, d)
	if closed := s.Close(); err == nil && closed != nil && o != Detected {
		err = fmt.Errorf("%s: close: %w", d.What, closed)
	}
	return o, err
}

func (p *Patient) open(image *memfs.FS, readOnly bool) (*Store, error) {
	if readOnly {
		return OpenReadOnly(image)
	}
	return Open(image, false)
}

// typed accepts the errors that damage may cause.
func (p *Patient) typed(d Damage, call string, err error) error {
	if errors.Is(err, base.ErrCorrupt) || errors.Is(err, base.ErrFormatTooNew) {
		return nil
	}
	return fmt.Errorf("%s: %s: error of the wrong type: %w", d.What, call, err)
}

// read reads everything in every way.
func (p *Patient) read(s *Store, d Damage) (Outcome, error) {
	want, o := p.pairs, Identical
	pairs, err := s.Contents()
	if err != nil {
		o = Detected
		if diff(want[:min(len(pairs), len(want))], pairs) != nil {
			return o, fmt.Errorf("%s: a scan gave wrong rows before its error", d.What)
		}
	} else if diff(want, pairs) != nil {
		if want, err = p.shorter(s, pairs, d.Single); err != nil {
			return o, fmt.Errorf("%s: %w", d.What, err)
		}
		o = Shorter
	}
	if err := p.otherReads(s, want, &err); err != nil {
		return o, fmt.Errorf("%s: %w", d.What, err)
	}
	if verr := s.Verify(); err == nil {
		err = verr
	}
	if err == nil {
		return o, nil
	}
	return Detected, p.typed(d, "read", err)
}

// shorter judges contents that are not all there.
func (p *Patient) shorter(s *Store, pairs []Pair, single bool) ([]Pair, error) {
	if p.Closed {
		return nil, fmt.Errorf("contents of a closed store changed: %w", diff(p.pairs, pairs))
	}
	f := &Found{Pairs: pairs}
	if err := p.History.identify(f, Moment{At: never}); err != nil {
		return nil, err
	}
	want := p.History.state(f.Prefix, f.Extra)
	if err := diff(want, pairs); err != nil {
		return nil, err
	}
	if s.Dropped() == 0 {
		return nil, fmt.Errorf("%d of %d commits are there, and no dropped bytes are reported", f.Prefix, len(p.History.sorted))
	}
	if single && f.Prefix < len(p.History.sorted)-1 {
		return nil, fmt.Errorf("%d of %d commits are there: one that a later commit knew to be durable was dropped", f.Prefix, len(p.History.sorted))
	}
	return want, nil
}

// otherReads scans backward and gets each key. *first is the first typed error.
func (p *Patient) otherReads(s *Store, want []Pair, first *error) error {
	back, err := s.Backward()
	slices.Reverse(back)
	if err == nil {
		err = diff(want, back)
		if err != nil {
			return fmt.Errorf("backward scan: %w", err)
		}
	} else if diff(want[max(0, len(want)-len(back)):], back) != nil {
		return fmt.Errorf("a backward scan gave wrong rows before its error")
	} else if *first == nil {
		*first = err
	}
	for _, w := range want {
		v, ok, err := s.Get(w.Key)
		switch {
		case err != nil && *first == nil:
			*first = err
		case err == nil && (!ok || v != w.Value):
			return fmt.Errorf("get of %.40q: %v %.20q, want %.20q", w.Key, ok, v, w.Value)
		}
	}
	return nil
}
