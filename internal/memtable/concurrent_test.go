package memtable_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/iterator"
)

// TestReadersBesideTheWriter: gets, covers, scans and record walks run while one
// goroutine inserts. The i-th record puts i as the value of key i mod 50, and every
// hundredth deletes the range of all keys; so what a reader must see at a snapshot
// follows from the snapshot alone. Meant for -race.
func TestReadersBesideTheWriter(t *testing.T) {
	const n, keys = 20_000, 50
	b := newFixed(n, n*32, 1)
	key := func(i int) []byte { return fmt.Appendf(nil, "\x00%02d", i) }
	var visible atomic.Uint64 // as the commit pipeline publishes sequences
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; i <= n; i++ { // record with sequence i
			if i%100 == 0 {
				b.add(base.KindRangeDelete, []byte{0}, []byte{1})
			} else {
				b.add(base.KindPut, key(i%keys), binary.LittleEndian.AppendUint64(nil, uint64(i)))
			}
			visible.Store(uint64(i))
		}
	})
	for w := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(w, 0))
			for snapshot := uint64(0); snapshot < n; {
				snapshot = visible.Load()
				vis := base.Visibility{Snapshot: snapshot}
				k := r.IntN(keys)
				want := newest(snapshot, uint64(k), keys)
				var e frame.Entry
				seq, ok := b.Get(&e, key(k), base.Hash(key(k)), vis)
				if ok != (want > 0) || ok && (seq != want || binary.LittleEndian.Uint64(e.Value) != want) {
					t.Errorf("key %d at %d: %d, want %d", k, snapshot, seq, want)
					return
				}
				if c := b.Cover(key(k), vis); c != snapshot/100*100 {
					t.Errorf("cover at %d is %d", snapshot, c)
					return
				}
				if r.IntN(200) == 0 && !scanOnce(t, b, vis, keys) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// newest returns the greatest sequence up to snapshot that puts key k.
func newest(snapshot, k, keys uint64) uint64 {
	for seq := snapshot; seq > 0; seq-- {
		if seq%keys == k && seq%100 != 0 {
			return seq
		}
	}
	return 0
}

func scanOnce(t *testing.T, b *builder, vis base.Visibility, keys uint64) bool {
	var sources []iterator.Source
	for _, it := range b.Iterators(nil) {
		sources = append(sources, iterator.Source{It: it})
	}
	sources = append(sources, iterator.Source{It: iterator.NewSliceIter(nil), Cover: b.Cover})
	v := iterator.New(sources, vis, nil, nil)
	defer v.Close()
	got := map[string]uint64{}
	for ok := v.First(); ok; ok = v.Next() {
		value, _ := v.Value()
		got[string(v.Key())] = binary.LittleEndian.Uint64(value)
	}
	for k := range keys {
		want := newest(vis.Snapshot, k, keys)
		if want < vis.Snapshot/100*100 {
			want = 0 // deleted by range since
		}
		if g := got[fmt.Sprintf("\x00%02d", k)]; g != want {
			t.Errorf("scan at %d: key %d is %d, want %d", vis.Snapshot, k, g, want)
			return false
		}
	}
	return true
}
