package table

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
)

// manyBlocks has blocks of all sizes: some of one row, a jumbo one among them.
func manyBlocks() *content {
	r := rand.New(rand.NewPCG(5, 6))
	c := &content{}
	for i := range 3000 {
		n := r.IntN(300)
		switch {
		case i == 1500:
			n = block.MaxPageBytes*2 + 77
		case i%50 == 0:
			n = r.IntN(100 << 10)
		}
		c.rows = append(c.rows, row{fmt.Sprintf("%06d", i), uint64(i) + 1, base.KindPut, strings.Repeat("some text "[:1+i%10], n/(1+i%10))})
	}
	c.sort()
	return c
}

func TestHelpersChangeNothing(t *testing.T) {
	c := manyBlocks()
	for _, codec := range []block.Codec{block.None, block.S2, block.Zstd} {
		want, meta := c.write(t, WriterOptions{Codec: codec, File: fileID})
		for _, helpers := range []int{1, 2, 5} {
			got, m := c.write(t, WriterOptions{Codec: codec, File: fileID, Helpers: helpers, GivesWay: map[int]func() bool{2: func() bool { return true }}[helpers]})
			if !bytes.Equal(got.b, want.b) || fmt.Sprint(m) != fmt.Sprint(meta) {
				t.Errorf("%s, %d helpers: %d bytes, %d without", codec, helpers, len(got.b), len(want.b))
			}
		}
	}
}

// The last block is not handed to a helper, for which the writer would only wait.
func TestLastBlockHasNoHelper(t *testing.T) {
	p := pipeline{codec: block.Zstd, helpers: 2}
	for _, last := range []bool{false, true} {
		p.last = last
		s := &sealedBlock{keys: []byte("keys")}
		p.add(s)
		if !s.helped != last || p.next() != s || len(s.ends) != 1 {
			t.Errorf("last %v: helped by another: %v, %d pages", last, !last, len(s.ends))
		}
	}
	w := NewWriter(&memFile{}, WriterOptions{Helpers: 2})
	w.Add([]byte("key"), 1, base.KindPut, nil)
	if _, err := w.Finish(); err != nil || !w.pipeline.last {
		t.Errorf("%v, or the last block was not said to be", err)
	}
}

// Where somebody waits for the processor, whoever gives way compresses without helpers.
func TestNoHelperWhereSomebodyWaits(t *testing.T) {
	for _, givesWay := range []bool{false, true} {
		p := pipeline{codec: block.Zstd, helpers: 2, givesWay: func() bool { return givesWay }, crowded: givesWay}
		s := &sealedBlock{keys: []byte("keys")}
		p.add(s)
		if !s.helped != givesWay || p.next() != s || len(s.ends) != 1 {
			t.Errorf("gives way %v: helped: %v", givesWay, !givesWay)
		}
	}
}

// However a writer with helpers ends, nothing is under way afterwards.
func TestHelpersEnd(t *testing.T) {
	c := manyBlocks()
	for name, end := range map[string]func(w *Writer) error{
		"finish":  func(w *Writer) error { _, err := w.Finish(); return err },
		"abandon": (*Writer).Abandon,
	} {
		for failAt := range 12 {
			f := &memFile{failAt: failAt}
			w := NewWriter(f, WriterOptions{Codec: block.Zstd, Helpers: 3})
			var err error
			for _, r := range c.rows {
				if err = w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)); err != nil {
					break
				}
			}
			if e := end(w); err == nil {
				err = e
			}
			if failAt == 0 && err != nil || err != nil && !errors.Is(err, errDisk) {
				t.Errorf("%s: %v", name, err)
			}
			if len(w.pipeline.under) > 0 || !f.closed {
				t.Errorf("%s, operation %d fails: %d blocks under way, closed %v", name, failAt, len(w.pipeline.under), f.closed)
			}
		}
	}
}

// The pages a writer keeps decoded are those a reader would make, as far as there is
// room, and none is left behind when a table is given up.
func TestResidentPages(t *testing.T) {
	c := manyBlocks()
	for _, limit := range []int64{1 << 30, 32 << 20, 1} {
		m := newRoom(t, limit)
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, Codec: block.Zstd, Resident: m.cache, Helpers: 2})
		c.addTo(t, w)
		meta, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		f.closed = false
		r := m.open(t, f, meta)
		r.Adopt(w.TakePages())
		kept := 0
		for i := range r.slots {
			p := m.cache.Load(&r.slots[i])
			if p == nil {
				continue
			}
			kept++
			want := make([]byte, len(p.Data()))
			if i%2 == 0 {
				err = r.readKeys(r.src, i/2, want)
			} else {
				err = r.readValues(i/2, want)
			}
			if err != nil || !bytes.Equal(p.Data(), want) {
				t.Fatalf("limit %d: page %d is not what is in the file (%v)", limit, i, err)
			}
		}
		if all := len(r.slots) - 2; limit == 1<<30 && kept != all || limit == 1 && kept != 0 || limit == 32<<20 && (kept == 0 || kept >= all) {
			t.Errorf("limit %d: %d of %d pages", limit, kept, len(r.slots))
		}
	}
	m := newRoom(t, 1<<30)
	for _, failAt := range []int{0, 2, 5} {
		w := NewWriter(&memFile{failAt: failAt}, WriterOptions{Resident: m.cache, Helpers: failAt % 3})
		for _, r := range c.rows {
			if w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)) != nil {
				break
			}
		}
		if failAt > 0 {
			if _, err := w.Finish(); err == nil {
				t.Fatal("nothing has failed")
			}
		}
		w.Abandon()
	} // newRoom's cleanup finds what is still allocated
}
