package table

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestSkip: no row of the part in which an iterator stands is newer than it says, and it skips to the key it is told, or to the
// border of a part: nothing of another part is passed that is as new as it is told. What a Reader is not told of parts it takes as one.
func TestSkip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, BlockBytes: 256})
	const keys = 4000
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", 2*i) }
	for i := range keys {
		newest := uint64(1000*(1+i/500*5%8) + r.IntN(100))
		for v := range uint64(1 + r.IntN(2)) {
			if err := w.Add(key(i), newest-v, base.KindPut, make([]byte, r.IntN(60))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.AddRangeDelete(key(0), key(keys), 1_000_000); err != nil {
		t.Fatal(err)
	}
	meta, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	rd := newRoom(t, 1<<30)
	ingested := meta
	ingested.GlobalSeq, ingested.MinSeq, ingested.MaxSeq = 77, 77, 77
	all := rd.open(t, &memFile{b: f.b}, ingested)
	all.AdoptSeqs(w.PartSeqs())
	one := all.NewIter(rd.slot, IterOptions{})
	if one.First(); one.NewestSeq() != 77 {
		t.Errorf("all rows have sequence 77, the newest %d", one.NewestSeq())
	}
	one.Close()
	for _, told := range []bool{false, true} {
		reader := rd.open(t, &memFile{b: f.b}, meta)
		most := uint64(1_000_000)
		if told {
			reader.AdoptSeqs(w.PartSeqs())
			most = 9000
		}
		it, walk := reader.NewIter(rd.slot, IterOptions{}), reader.NewIter(rd.slot, IterOptions{})
		borders := 0
		for range 500 {
			from, to := r.IntN(keys), key(r.IntN(keys+1))
			to[5] += byte(r.IntN(2)) // or one between
			forward := bytes.Compare(key(from), to) < 0
			it.SeekGE(key(from))
			newest := it.NewestSeq()
			walk.SeekGE(key(r.IntN(keys)))
			below := max(newest+1, walk.NewestSeq()) // what nothing in another part exceeds
			if r.IntN(2) == 0 {
				below = newest + 1 + r.Uint64N(3000)
			}
			walk.SeekGE(key(from))
			skip, seek, step := it.SkipGE, walk.SeekGE, walk.Next
			if !forward {
				skip, seek, step = it.SkipLT, walk.SeekLT, walk.Prev
			}
			ok := skip(to, below)
			reached := !ok || forward == (bytes.Compare(it.Key(), to) >= 0)
			for walk.Valid() && !(ok && bytes.Equal(walk.Key(), it.Key()) && walk.Seq() == it.Seq()) {
				if forward == (bytes.Compare(walk.Key(), to) >= 0) {
					t.Fatalf("told %v: from %s to %s at %s/%d", told, key(from), to, it.Key(), it.Seq())
				}
				if walk.Seq() >= below || newest > most {
					t.Fatalf("told %v: %s/%d was passed, the newest should be less than %d", told, walk.Key(), walk.Seq(), below)
				}
				step()
			}
			if !reached {
				if borders++; it.NewestSeq() < below {
					t.Fatalf("told %v: from %s to %s at %s though all there is older than %d", told, key(from), to, it.Key(), below)
				}
			} else if seek(to) != ok || ok && !(bytes.Equal(it.Key(), walk.Key()) && it.Seq() == walk.Seq()) {
				t.Fatalf("told %v: from %s to %s: %v", told, key(from), to, ok)
			}
		}
		if (borders > 100) != told {
			t.Errorf("told %v: %d times to a border", told, borders)
		}
		it.Close()
		walk.Close()
	}
}
