package memfs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// workload writes random bytes to a few files and notes, by a model of its own,
// which bytes must be on the disk after which mutation.
type workload struct {
	r     *rand.Rand
	names []string
	live  map[string][]byte    // what was written
	must  []map[string]certain // by crash point
}

// certain is what is known of a durable file: the bytes, and which of them count.
type certain struct {
	data  []byte
	known []bool
}

func newWorkload(seed uint64) *workload {
	return &workload{
		r: rand.New(rand.NewPCG(seed, 1)), names: []string{"a", "b", "c"},
		live: map[string][]byte{},
		must: []map[string]certain{{}},
	}
}

// note copies the latest knowledge for the crash points up to the journal's end.
func (w *workload) note(f *memfs.FS, change func(now map[string]certain)) {
	last := w.must[len(w.must)-1]
	for len(w.must) <= f.Journal().Len() {
		next := map[string]certain{}
		for name, c := range last {
			next[name] = certain{bytes.Clone(c.data), append([]bool(nil), c.known...)}
		}
		w.must = append(w.must, next)
	}
	change(w.must[len(w.must)-1])
}

func (w *workload) run(t testing.TB, f *memfs.FS, steps int) {
	handles := map[string]vfs.File{}
	for _, name := range w.names {
		handles[name] = create(t, f, name, "")
	}
	check(t, f.SyncDir("/"))
	w.note(f, func(now map[string]certain) {
		for _, name := range w.names {
			now[name] = certain{}
		}
	})
	for range steps {
		name := w.names[w.r.IntN(len(w.names))]
		switch w.r.IntN(8) {
		case 0, 1:
			check(t, handles[name].Sync())
			w.note(f, func(now map[string]certain) { now[name] = w.all(name) })
		case 2:
			check(t, handles[name].Preallocate(0, int64(w.r.IntN(3000))))
			size, _ := handles[name].Size()
			w.grow(name, int(size))
			w.note(f, func(map[string]certain) {})
		default:
			w.write(t, f, handles[name], name)
		}
	}
}

func (w *workload) all(name string) certain {
	c := certain{data: bytes.Clone(w.live[name]), known: make([]bool, len(w.live[name]))}
	for i := range c.known {
		c.known[i] = true
	}
	return c
}

func (w *workload) grow(name string, size int) {
	if n := size - len(w.live[name]); n > 0 {
		w.live[name] = append(w.live[name], make([]byte, n)...)
	}
}

func (w *workload) write(t testing.TB, f *memfs.FS, h vfs.File, name string) {
	off, n := w.r.IntN(2000), 1+w.r.IntN(1500)
	p := bytes.Repeat([]byte{byte('A' + w.r.IntN(26))}, n)
	write(t, h, string(p), int64(off))
	w.grow(name, off+n)
	copy(w.live[name][off:], p)
	w.note(f, func(now map[string]certain) {
		for i := off; i < min(off+n, len(now[name].known)); i++ {
			now[name].known[i] = false
		}
	})
}

// judge checks an image against what must be there after `at` mutations.
func (w *workload) judge(at int, image *memfs.FS) error {
	for name, want := range w.must[at] {
		got, err := image.ReadFile(name)
		if err != nil {
			return err
		}
		if len(got) < len(want.data) {
			return fmt.Errorf("%s has %d bytes, %d were synced", name, len(got), len(want.data))
		}
		for i, known := range want.known {
			if known && got[i] != want.data[i] {
				return fmt.Errorf("%s: synced byte %d is %q, was %q", name, i, got[i], want.data[i])
			}
		}
	}
	return nil
}
