package memtable_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/memtable"
)

// stacked is a stack of tables and what it must agree with.
type stacked struct {
	memtable.Stack
	bytes  int64
	tables []*builder
	models []*model
	next   uint64
	oldest uint64 // nobody sees less

	skips, early int // see skip
}

func newStacked(most int64) *stacked {
	s := &stacked{next: 1}
	s.Init(most, func(delta int64) { s.bytes += delta }, func() uint64 { return s.oldest })
	return s
}

// rotate puts a new table on top.
func (s *stacked) rotate() {
	s.tables = append(s.tables, newFixed(2000, 1<<18, s.next))
	s.models = append(s.models, &model{first: s.next})
}

func (s *stacked) add(kind base.Kind, key, value []byte) {
	top := len(s.tables) - 1
	s.tables[top].add(kind, key, value)
	s.models[top].add(kind, key, value)
	s.next++
}

// fail takes back the last n records, and goes on in a new table.
func (s *stacked) fail(n int) {
	top := len(s.tables) - 1
	n = min(n, s.tables[top].Len())
	s.tables[top].Truncate(s.tables[top].Len() - n)
	s.models[top].entries = s.models[top].entries[:s.tables[top].Len()]
	s.next -= uint64(n)
	s.rotate()
}

// flush removes the oldest table.
func (s *stacked) flush() {
	s.tables, s.models = s.tables[1:], s.models[1:]
	s.Keep(s.plain()[0])
}

func (s *stacked) plain() (tables []*memtable.Table) {
	for _, b := range s.tables {
		tables = append(tables, b.Table)
	}
	return tables
}

// compare walks the stack up to a sequence.
func (s *stacked) compare(t *testing.T, upTo uint64) {
	t.Helper()
	its, ok := s.Append(nil, nil, s.plain(), upTo)
	if !ok {
		t.Fatal("no order of the newest tables")
	}
	if len(its) > 6 {
		t.Errorf("%d chunks", len(its))
	}
	var want []iterator.Entry
	for _, m := range s.models {
		want = append(want, m.sorted()...)
	}
	want = slices.DeleteFunc(want, func(e iterator.Entry) bool { return e.Seq > upTo })
	iterator.Sort(want)
	it := iterator.NewMerging(its...)
	defer it.Close()
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		if it.Seq() > upTo {
			continue
		}
		v, _ := it.Value()
		if i == len(want) || !bytes.Equal(it.Key(), want[i].Key) || it.Seq() != want[i].Seq || it.Kind() != want[i].Kind || !bytes.Equal(v, want[i].Value) {
			t.Fatalf("row %d of %d is %q/%d", i, len(want), it.Key(), it.Seq())
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d rows of %d", i, len(want))
	}
	s.compareKeys(t, want, upTo)
}

// compareKeys walks the newest versions only, from a key on.
func (s *stacked) compareKeys(t *testing.T, all []iterator.Entry, upTo uint64) {
	t.Helper()
	newest := slices.CompactFunc(slices.Clone(all), func(a, b iterator.Entry) bool { return bytes.Equal(a.Key, b.Key) })
	var from []byte
	if len(newest) > 0 {
		from = newest[len(newest)/3].Key
		newest = newest[len(newest)/3:]
	}
	its, _ := s.Append(nil, nil, s.plain(), upTo)
	it := iterator.NewMerging(its...)
	defer it.Close()
	i := 0
	for ok := it.SeekGE(from); ok; ok = nextSeen(it, upTo) {
		if it.Seq() > upTo {
			continue
		}
		if i == len(newest) || !bytes.Equal(it.Key(), newest[i].Key) || it.Seq() != newest[i].Seq {
			t.Fatalf("key %d of %d is %q/%d", i, len(newest), it.Key(), it.Seq())
		}
		i++
	}
	if i != len(newest) {
		t.Fatalf("%d keys of %d", i, len(newest))
	}
}

// skip looks at what iterators up to a sequence skip: neither way a row that is as new as they are told, and all others but for
// where there are many.
func (s *stacked) skip(t *testing.T, r *rand.Rand, upTo uint64) {
	t.Helper()
	its, _ := s.Append(nil, nil, s.plain(), upTo)
	for _, it := range its {
		var all []iterator.Entry
		for ok := it.First(); ok; ok = it.Next() {
			all = append(all, iterator.Entry{Key: bytes.Clone(it.Key()), Seq: it.Seq()})
		}
		if len(all) == 0 {
			continue
		}
		dated, at := it.(iterator.Dated), 0
		for it.First(); at < len(all)-1 && r.IntN(3) > 0; at++ {
			it.Next()
		}
		for range 20 {
			key := all[r.IntN(len(all))].Key
			below := dated.NewestSeq() + 1 + r.Uint64N(s.next)/8
			stops := func(e iterator.Entry) bool { return e.Seq >= below && e.Seq <= upTo }
			forward := at == 0 || at < len(all)-1 && bytes.Compare(key, all[at].Key) > 0
			skip, step := dated.SkipGE, 1
			if !forward {
				skip, step = dated.SkipLT, -1
			}
			ok := skip(key, below)
			stands := func() bool { return ok && bytes.Equal(it.Key(), all[at].Key) && it.Seq() == all[at].Seq }
			s.skips++
			for at += step; at >= 0 && at < len(all) && forward == (bytes.Compare(all[at].Key, key) < 0) && !stops(all[at]); at += step {
				if stands() {
					s.early++
					break
				}
			}
			if at < 0 || at == len(all) {
				if ok {
					t.Fatalf("forward %v to %q: at %q, not the end", forward, key, it.Key())
				}
				break
			}
			if !stands() {
				t.Fatalf("forward %v to %q below %d: %q/%d, want %q/%d", forward, key, below, it.Key(), it.Seq(), all[at].Key, all[at].Seq)
			}
		}
	}
}

// nextSeen moves to the next key, or to the next version where the one it stands on is not
// to be seen.
func nextSeen(it *iterator.Merging, upTo uint64) bool {
	if it.Seq() > upTo {
		return it.Next()
	}
	return it.NextKey()
}

// TestStack: tables come and go, commits fail, keys change their shape; the order is
// always that of all records.
func TestStack(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newStacked(1 << 30)
		s.rotate()
		style := []string{"\x00key%03d", "\x00a longer key with much in common/%06d", "\x00%d"}
		for step := range 3000 {
			key := fmt.Appendf(nil, style[(int(seed)+step/1000)%3], r.IntN(200))
			switch p := r.IntN(1000); {
			case p < 12 || s.tables[len(s.tables)-1].Len() > 1900:
				s.rotate()
			case p < 22 && len(s.tables) > 1:
				s.flush()
			case p < 27:
				s.fail(1 + r.IntN(20))
			case p < 40:
				s.compare(t, s.next-1)
			case p < 50:
				s.compare(t, r.Uint64N(s.next))
			case p < 60:
				s.skip(t, r, s.next-1)
				s.skip(t, r, r.Uint64N(s.next))
			case p < 200:
				s.add(base.KindDelete, key, nil)
			case p < 210:
				s.add(base.KindRangeDelete, key, append(key, 0))
			default:
				s.add(base.KindPut, key, fmt.Appendf(nil, "%d%0*d", step, r.IntN(200), 0))
			}
		}
		s.compare(t, s.next-1)
		if s.bytes < 16 {
			t.Errorf("it counts %d bytes", s.bytes)
		}
		if s.early > s.skips/20 {
			t.Errorf("%d skips of %d ended early", s.early, s.skips)
		}
		s.Keep(nil)
		if s.bytes != 0 {
			t.Errorf("%d bytes are left", s.bytes)
		}
	}
}

// TestStackLetsGo: an order that nobody asks for any more goes with the next table that
// does, one that is asked for stays.
func TestStackLetsGo(t *testing.T) {
	s := newStacked(1 << 20)
	for range 4 {
		s.rotate()
		for i := range 100 {
			s.add(base.KindPut, fmt.Appendf(nil, "\x00%03d", i), nil)
		}
	}
	s.compare(t, s.next-1)
	full := s.bytes
	s.flush()
	if full == 0 || s.bytes != full {
		t.Errorf("%d bytes of %d are left though somebody has asked", s.bytes, full)
	}
	s.compare(t, s.next-1)
	if s.bytes != full*3/4 {
		t.Errorf("%d bytes of %d, want three quarters", s.bytes, full)
	}
	s.flush()
	s.flush()
	if s.bytes != 0 {
		t.Errorf("%d bytes are left though nobody has asked", s.bytes)
	}
	s.compare(t, s.next-1)
}

// TestStackRefuses: of older tables than the newest, and of too many records, there is no
// order; nothing of it stays.
func TestStackRefuses(t *testing.T) {
	s := newStacked(200 * 16)
	s.rotate()
	for i := range 150 {
		s.add(base.KindPut, fmt.Appendf(nil, "\x00%03d", i), nil)
	}
	old := s.plain()
	s.rotate()
	s.add(base.KindPut, []byte("\x00x"), nil)
	s.compare(t, s.next-1)
	if _, ok := s.Append(nil, nil, old, s.next); ok {
		t.Error("an order of tables of an older state")
	}
	older := s.plain()
	s.flush()
	s.compare(t, s.next-1)
	if _, ok := s.Append(nil, nil, older, s.next); ok {
		t.Error("an order of tables that are gone")
	}
	for i := range 200 {
		s.add(base.KindPut, fmt.Appendf(nil, "\x00%03d", i), nil)
	}
	if _, ok := s.Append(nil, nil, s.plain(), s.next); ok || s.bytes != 0 {
		t.Errorf("%v: an order of too many records, %d bytes", ok, s.bytes)
	}
}

// TestStackOfWhatIsSeen: versions that nobody sees are left out, and nobody misses one: not who
// sees the oldest sequence there was when somebody scanned, nor who sees more.
func TestStackOfWhatIsSeen(t *testing.T) {
	const keys = 60
	records, refs := 0, int64(0)
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newStacked(1 << 30)
		s.rotate()
		for range 100 {
			for range r.IntN(60) {
				kind := base.KindPut
				if r.IntN(4) == 0 {
					kind = base.KindDelete
				}
				s.add(kind, fmt.Appendf(nil, "key %d", r.IntN(keys)), fmt.Append(nil, s.next))
			}
			switch r.IntN(12) {
			case 0:
				s.rotate()
			case 1:
				s.oldest = s.next - 1
			case 2:
				s.oldest += r.Uint64N(s.next - s.oldest)
			case 3:
				if s.next-1-s.oldest > 20 { // which are not seen yet
					s.fail(r.IntN(20))
				}
			}
			for range 2 {
				if upTo := s.oldest + r.Uint64N(s.next-s.oldest); upTo > 0 {
					s.compareSeen(t, upTo)
				}
			}
		}
		for _, b := range s.tables {
			records += b.Len()
		}
		refs += s.bytes / 16
	}
	t.Logf("%d refs of %d records", refs, records)
	if refs*4 > int64(records)*3 {
		t.Error("hardly any record was left out")
	}
}

// compareSeen walks what a sequence sees.
func (s *stacked) compareSeen(t *testing.T, upTo uint64) {
	t.Helper()
	var all []iterator.Entry
	for _, m := range s.models {
		all = append(all, m.sorted()...)
	}
	all = slices.DeleteFunc(all, func(e iterator.Entry) bool { return e.Seq > upTo })
	iterator.Sort(all)
	want := slices.CompactFunc(all, func(a, b iterator.Entry) bool { return bytes.Equal(a.Key, b.Key) })
	want = slices.DeleteFunc(want, func(e iterator.Entry) bool { return e.Kind == base.KindDelete })
	its, ok := s.Append(nil, nil, s.plain(), upTo)
	if !ok {
		t.Fatal("no order of the newest tables")
	}
	var sources []iterator.Source
	for _, it := range its {
		sources = append(sources, iterator.Source{It: it})
	}
	it := iterator.New(sources, base.Visibility{Snapshot: upTo}, nil, nil)
	defer it.Close()
	i := 0
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if i == len(want) || err != nil || !bytes.Equal(it.Key(), want[i].Key) || !bytes.Equal(v, want[i].Value) {
			t.Fatalf("row %d of %d at %d is %q: %q %v", i, len(want), upTo, it.Key(), v, err)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%d rows of %d at %d", i, len(want), upTo)
	}
}

// TestStackBesideTheWriter: scans run while tables are written to, come and go. Meant for
// -race. The i-th record puts i as the value of key i mod 50.
func TestStackBesideTheWriter(t *testing.T) {
	const n, keys, whole = 30_000, 50, 1000
	var s memtable.Stack
	s.Init(1<<30, func(int64) {}, func() uint64 { return 0 })
	var tables atomic.Pointer[[]*memtable.Table]
	var visible atomic.Uint64
	var wg sync.WaitGroup
	var scans, ordered atomic.Int64
	wg.Go(func() {
		var now []*memtable.Table
		var b *builder
		for i := 1; i <= n; i++ {
			if i%whole == 1 {
				b = newFixed(whole, whole*40, uint64(i))
				now = append(slices.Clone(now[max(0, len(now)-3):]), b.Table)
				stored := now
				tables.Store(&stored)
				s.Keep(now[0])
			}
			b.add(base.KindPut, fmt.Appendf(nil, "\x00%02d", i%keys), fmt.Append(nil, i))
			visible.Store(uint64(i))
		}
	})
	for range 3 {
		wg.Go(func() {
			for upTo := uint64(0); upTo < n; {
				upTo = visible.Load() // first, as a transaction's snapshot: what the tables hold is newer
				now := tables.Load()
				if now == nil {
					continue
				}
				scans.Add(1)
				its, ok := s.Append(nil, nil, *now, upTo)
				if !ok {
					continue
				}
				ordered.Add(1)
				oldest := (*now)[0].FirstSeq()
				it := iterator.NewMerging(its...)
				seen := 0
				for ok := it.First(); ok; ok = nextSeen(it, upTo) {
					if it.Seq() > upTo {
						continue
					}
					v, _ := it.Value()
					if want := fmt.Append(nil, it.Seq()); !bytes.Equal(v, want) || it.Seq() > upTo || it.Seq()+keys <= upTo {
						t.Errorf("up to %d: key %q is %q of %d", upTo, it.Key(), v, it.Seq())
						return
					}
					seen++
				}
				if upTo >= oldest+keys && seen != keys {
					t.Errorf("up to %d, from %d: %d keys", upTo, oldest, seen)
					return
				}
			}
		})
	}
	wg.Wait()
	if ordered.Load() < scans.Load()/10 {
		t.Errorf("%d of %d scans found an order", ordered.Load(), scans.Load())
	}
}

// TestStackAfterAFailedWrite: a record whose commit failed, and whose sequence another one has got since, hides nothing.
func TestStackAfterAFailedWrite(t *testing.T) {
	for _, many := range []int{300, 1000, 1900} {
		s := newStacked(1 << 30)
		s.rotate()
		put := func(key int, value string) { s.add(base.KindPut, fmt.Appendf(nil, "key %5d", key), []byte(value)) }
		for i := range many {
			put(i, "old")
		}
		s.compareSeen(t, s.next-1)
		put(many/2, "never")
		s.compareSeen(t, s.next-2)
		s.fail(1)
		for i := range many {
			put(many+i, "new")
			s.oldest = s.next - 1
			if i%7 == 0 {
				s.compareSeen(t, s.oldest)
			}
		}
	}
}
