package workload

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// sharedStore is an ordered store in memory for several goroutines. Its hooks spoil
// answers.
type sharedStore struct {
	lock   sync.RWMutex
	values map[string][]byte
	onPut  func(key, value []byte) bool // false: acknowledge and do nothing
	onScan func(keys []string) []string
}

func newShared() *sharedStore { return &sharedStore{values: map[string][]byte{}} }

func (s *sharedStore) Put(key, value []byte) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.onPut == nil || s.onPut(key, value) {
		s.values[string(key)] = bytes.Clone(value)
	}
	return nil
}

func (s *sharedStore) Get(key []byte, see func([]byte) error) error {
	s.lock.RLock()
	v, ok := s.values[string(key)]
	s.lock.RUnlock()
	if !ok {
		return engine.ErrNotFound
	}
	return see(v)
}

func (s *sharedStore) Scan(from []byte, n int, see func(key, value []byte) error) error {
	s.lock.RLock()
	defer s.lock.RUnlock()
	var keys []string
	for k := range s.values {
		if k >= string(from) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = keys[:min(n, len(keys))]
	if s.onScan != nil {
		keys = s.onScan(keys)
	}
	for _, k := range keys {
		if err := see([]byte(k), s.values[k]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sharedStore) Delete([]byte) error { return nil }
func (s *sharedStore) Close() error        { return nil }

var ycsbParams = Params{Workload: "ycsb", Variant: "sound", N: 300, ValueBytes: 64, Seed: 1, Goroutines: 4}

func loadedRecords(t *testing.T, s *sharedStore, inserts int) *records {
	t.Helper()
	r := newRecords(ycsbParams, inserts)
	if err := r.load(NewRecorder(""), engine.Info{}, s, data.Sequence(r.loaded)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordsFindEveryKindOfWrongAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*sharedStore, *records)
		do    func(*sharedStore, *records) error
		want  string
	}{
		{"nothing", nil, func(s *sharedStore, r *records) error { return r.readAll(s) }, ""},
		{"lost", func(s *sharedStore, r *records) { delete(s.values, string(r.key(5))) },
			func(s *sharedStore, r *records) error { return r.lookup().read(s, 5) }, "lost"},
		{"an update lost", func(s *sharedStore, _ *records) { s.onPut = func(k, v []byte) bool { return false } },
			func(s *sharedStore, r *records) error {
				if err := r.update(s, 9); err != nil {
					return err
				}
				return r.lookup().read(s, 9)
			}, "a stale value"},
		{"another's", func(s *sharedStore, r *records) { s.values[string(r.key(5))] = s.values[string(r.key(6))] },
			func(s *sharedStore, r *records) error { return r.lookup().modify(s, 5) }, "a wrong value"},
		{"scan", nil, func(s *sharedStore, r *records) error { return r.scan(s, 5, 50) }, ""},
		{"scan of the end", nil, func(s *sharedStore, r *records) error { return r.scan(s, lastByKey(r), 50) }, ""},
		{"a record left out", func(s *sharedStore, _ *records) {
			s.onScan = func(k []string) []string { return append(k[:3:3], k[4:]...) }
		}, func(s *sharedStore, r *records) error { return r.scan(s, 5, 20) }, "is left out"},
		{"the end left out", func(s *sharedStore, _ *records) { s.onScan = func(k []string) []string { return k[:len(k)-1] } },
			func(s *sharedStore, r *records) error { return r.scan(s, r.id[0], 20) }, "is left out"},
		{"not in order", func(s *sharedStore, _ *records) { s.onScan = func(k []string) []string { slices.Reverse(k); return k } },
			func(s *sharedStore, r *records) error { return r.scan(s, r.id[0], 20) }, ""},
		{"too many", func(s *sharedStore, r *records) {
			s.onScan = func(k []string) []string { return append(k, string(r.keys.At(20))) }
		}, func(s *sharedStore, r *records) error { return r.scan(s, r.id[0], 20) }, "21 came"},
		{"an insert lost", func(s *sharedStore, _ *records) { s.onPut = func(k, v []byte) bool { return false } },
			func(s *sharedStore, r *records) error {
				if err := r.insert(s); err != nil {
					return err
				}
				return r.scan(s, r.id[0], 1000)
			}, "is left out"},
	} {
		s := newShared()
		r := loadedRecords(t, s, 10)
		if c.spoil != nil {
			c.spoil(s, r)
		}
		err := c.do(s, r)
		switch {
		case c.name == "not in order":
			if !isWrong(err) {
				t.Errorf("%s: %v", c.name, err)
			}
		case c.want == "" && err != nil, c.want != "" && (!isWrong(err) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want ...%s...", c.name, err, c.want)
		}
	}
}

// lastByKey is the record loaded whose key is the greatest.
func lastByKey(r *records) int32 {
	for at := len(r.id) - 1; ; at-- {
		if int(r.id[at]) < r.loaded {
			return r.id[at]
		}
	}
}

// A right store never answers wrong, however the goroutines meet.
func TestRecordsHoldForSeveralGoroutines(t *testing.T) {
	s := newShared()
	r := loadedRecords(t, s, 400)
	err := together(4, func(g int) error {
		l := r.lookup()
		for i := range 400 {
			id := int32((i*7 + g) % 20)
			if err := r.update(s, id); err != nil {
				return err
			}
			if err := l.read(s, int32(i%20)); err != nil {
				return err
			}
			if i%4 == 0 {
				if err := r.insert(s); err != nil {
					return err
				}
			}
			if err := l.read(s, r.latestBut(int32(i%5))); err != nil {
				return err
			}
			if err := l.modify(s, int32(i%30)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.latest.Load() != 700 {
		t.Errorf("latest is %d after 300 records and 400 inserts", r.latest.Load())
	}
	if err := r.readAll(s); err != nil {
		t.Error(err)
	}
	if err := r.insert(s); err == nil {
		t.Error("more inserts than planned are taken")
	}
}

func TestYCSBDrawsTheStandardMixes(t *testing.T) {
	p := Params{N: 20_000, Seed: 1, Goroutines: 2}
	for _, m := range ycsbMixes {
		lists, inserts, err := drawYCSB(m, p, 30)
		if err != nil || len(lists) != 2 {
			t.Fatal(err)
		}
		kinds, lengths, hits, total := map[ycsbKind]int{}, map[uint8]int{}, map[int32]int{}, 0
		for _, list := range lists {
			for _, op := range list {
				kinds[op.kind]++
				lengths[op.length]++
				hits[op.id]++
				total++
			}
		}
		want := 60_000
		if m.scan > 0 {
			want = 10_000
		}
		if total != want || inserts != kinds[ycsbInsert] {
			t.Errorf("%s: %d operations, %d inserts, %d counted", m.name, total, kinds[ycsbInsert], inserts)
		}
		for kind, percent := range map[ycsbKind]int{ycsbUpdate: m.update, ycsbModify: m.modify, ycsbInsert: m.insert, ycsbScan: m.scan} {
			if got := float64(100*kinds[kind]) / float64(total); got < float64(percent)-1.5 || got > float64(percent)+1.5 {
				t.Errorf("%s: %.1f %% of kind %d, want %d", m.name, got, kind, percent)
			}
		}
		if len(lengths) != longestScan || lengths[0] != 0 || lengths[100] == 0 {
			t.Errorf("%s: %d lengths of scans", m.name, len(lengths))
		}
		most := 0
		for _, n := range hits {
			most = max(most, n)
		}
		if most < total*6/100 || most > total*12/100 { // 1/zeta(20000, 0.99) is 9.2 %
			t.Errorf("%s: the most popular key is chosen %d times of %d", m.name, most, total)
		}
		if hits[0] == most != m.latest {
			t.Errorf("%s: number 0 is chosen %d times, the most %d", m.name, hits[0], most)
		}
	}
}

func TestTogetherReturnsEveryError(t *testing.T) {
	err := together(3, func(g int) error { return fmt.Errorf("fault %d", g) })
	for g := range 3 {
		if !strings.Contains(fmt.Sprint(err), fmt.Sprintf("fault %d", g)) {
			t.Errorf("%v has no fault %d", err, g)
		}
	}
}
