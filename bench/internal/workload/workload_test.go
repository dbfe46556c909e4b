package workload

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

var testParams = Params{Workload: "w1", Variant: "sound", N: 30, ValueBytes: 100, Seed: 1}

// mapReader answers from a map by id.
type mapReader map[uint64][]byte

func (m mapReader) Get(key []byte, see func([]byte) error) error {
	id, _ := data.ParseKey(key)
	v, ok := m[id]
	if !ok {
		return engine.ErrNotFound
	}
	return see(v)
}

func filled(e *expectation) mapReader {
	m := mapReader{}
	for id := range uint64(e.n) {
		m[id] = e.value(id)
	}
	return m
}

func isWrong(err error) bool {
	var w *WrongAnswer
	return errors.As(err, &w)
}

func TestGetAllFindsEveryKindOfWrongAnswer(t *testing.T) {
	e := expect(testParams)
	e.version = 2
	order := data.Sequence(e.n)
	if err := e.getAll(filled(e), order); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(mapReader){
		"lost":        func(m mapReader) { delete(m, 29) },
		"stale":       func(m mapReader) { m[11] = e.source.Value(11, 1, e.size) },
		"another's":   func(m mapReader) { m[3] = m[4] },
		"cut":         func(m mapReader) { m[7] = m[7][:99] },
		"empty":       func(m mapReader) { m[0] = nil },
		"one bit off": func(m mapReader) { m[5] = append([]byte{m[5][0] ^ 1}, m[5][1:]...) },
	} {
		m := filled(e)
		spoil(m)
		if err := e.getAll(m, order); !isWrong(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mute finds every key and hands nothing over.
type mute struct{ engine.Store }

func (mute) Get([]byte, func([]byte) error) error { return nil }

// A get that ends well without a value is no answer, whoever asks.
func TestAValueThatIsNotHandedOverIsNoAnswer(t *testing.T) {
	p := testParams
	e := expect(p)
	m, records := newMixed(e, nil), newRecords(p, 0)
	reader := &participant{expectation: e, store: mute{}, seen: make([]uint64, e.n)}
	l := &lean{rec: NewRecorder(""), p: p, step: 1, made: make([]byte, loadBatch*2*leanBytes), store: mute{}}
	for name, read := range map[string]func() error{
		"getAll":    func() error { return e.getAll(mute{}, data.Sequence(e.n)) },
		"mixed":     func() error { return m.get(mute{}, 3) },
		"records":   func() error { return records.lookup().read(mute{}, 3) },
		"readAll":   func() error { return records.readAll(mute{}) },
		"published": func() error { return getHot(mute{}, 1, nil) },
		"reader":    reader.read,
		"lean":      l.gets,
		"crash":     func() error { return newCrashModel(p, engine.Info{}).check(mute{}) },
	} {
		if err := read(); !isWrong(err) || !strings.Contains(err.Error(), "no value was handed over") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is read costs the program nothing that is counted.
func TestALookupAllocatesNothing(t *testing.T) {
	e := expect(testParams)
	m, r := newMixed(e, nil), filled(e)
	if n := testing.AllocsPerRun(100, func() { _ = m.get(r, 3) }); n > 0 {
		t.Errorf("%v allocations for a get", n)
	}
}

func TestNoneLeft(t *testing.T) {
	e := expect(testParams)
	if err := e.noneLeft(mapReader{}); err != nil {
		t.Error(err)
	}
	if err := e.noneLeft(mapReader{29: nil}); !isWrong(err) {
		t.Errorf("a key that is left: %v", err)
	}
}

func TestWalkFindsEveryKindOfWrongAnswer(t *testing.T) {
	e := expect(testParams)
	for name, c := range map[string]struct {
		ids     []int
		ordered bool
		ok      bool
	}{
		"in order":               {ids(0, 30), true, true},
		"shuffled, no order":     {append(ids(15, 30), ids(0, 15)...), false, true},
		"shuffled, with order":   {append(ids(15, 30), ids(0, 15)...), true, false},
		"one missing at the end": {ids(0, 29), true, false},
		"one missing":            {append(ids(0, 9), ids(10, 30)...), false, false},
		"one twice":              {append(ids(0, 30), 4), false, false},
		"one too many":           {ids(0, 31), true, false},
	} {
		w := e.newWalk(c.ordered)
		more := data.NewKeys(31)
		var err error
		for _, id := range c.ids {
			if err == nil {
				err = w.pair(more.At(id), e.value(uint64(id)))
			}
		}
		if err = w.end(err); (err == nil) != c.ok || (err != nil && !isWrong(err)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := e.newWalk(true).pair(e.keys.At(0), []byte("x")); !isWrong(err) {
		t.Errorf("a wrong value: %v", err)
	}
	if err := e.newWalk(true).key([]byte("alien")); !isWrong(err) {
		t.Errorf("an alien key: %v", err)
	}
}

func ids(from, to int) (s []int) {
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

func TestCells(t *testing.T) {
	w := Workload{Name: "w", Variant: "v", QuickN: []int{1, 2}, FullN: []int{3}, ValueBytes: 10}
	both := []bool{true, false}
	for _, c := range []struct {
		scale Scale
		want  int
		first string
	}{
		{Scale{Sync: both}, 4, "w/v/n=1/v=10/sync=on"},
		{Scale{Sync: both, Full: true}, 6, "w/v/n=1/v=10/sync=on"},
		{Scale{Sync: both[1:], Counts: []int{7}, ValueBytes: 256}, 1, "w/v/n=7/v=256/sync=off"},
	} {
		cells := w.Cells(c.scale)
		if len(cells) != c.want || cells[0].ID() != c.first {
			t.Errorf("%+v: %d cells, first %s", c.scale, len(cells), cells[0].ID())
		}
	}
	w.FullOnly = true
	if got := w.Cells(Scale{Sync: both, Full: true}); len(got) != 2 || got[0].N != 3 {
		t.Errorf("the full suite of what only it has: %d cells, want its large count with syncs on and off", len(got))
	}
}

func TestWorkloadsAreComplete(t *testing.T) {
	for _, w := range All() {
		p := w.Cells(Scale{Sync: []bool{true, false}})[0]
		if w.Estimate(p, engine.Info{}, time.Millisecond) <= 0 || len(w.Conditions(p)) == 0 {
			t.Errorf("%s: no estimate or no conditions", w.Name)
		}
		seen := map[string]bool{}
		for _, c := range append(w.Columns, Common...) {
			if seen[c.Key] || c.Unit == "" || c.Group == "" || c.Title == "" {
				t.Errorf("%s: column %+v", w.Name, c)
			}
			seen[c.Key] = true
		}
	}
	if _, err := Find("w9"); err == nil {
		t.Error("an unknown workload is found")
	}
}

func TestDiskUseTellsHolesFromData(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "sub", "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	f.Write(make([]byte, 4096))
	f.Truncate(1 << 24)
	f.Sync()
	f.Close()
	apparent, allocated, err := diskUse(dir)
	if err != nil || apparent != 1<<24 {
		t.Errorf("apparent %d, %v", apparent, err)
	}
	if allocated < 4096 || allocated > apparent {
		t.Errorf("allocated %d", allocated)
	}
}

var sink []byte

func TestRecorder(t *testing.T) {
	r := NewRecorder("")
	_, err := r.Phase("p", 10, func() error {
		for range 10 {
			sink = make([]byte, 1000)
		}
		time.Sleep(20 * time.Millisecond)
		return nil
	})
	if err != nil || r.Metrics["p"] < 2e6 || r.Metrics["p_allocs"] < 1 || r.Metrics["p_B"] < 1000 {
		t.Errorf("%v %v", r.Metrics, err)
	}
	r.None("why", "p")
	if _, left := r.Metrics["p"]; left || r.NA["p"] != "why" {
		t.Error("a figure taken back is still there")
	}
	r.Note("a")
	r.Note("")
	r.Note("a")
	if len(r.Notes) != 1 {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestKilobytes(t *testing.T) {
	text := "Name:\tx\nVmHWM:\t   38512 kB\nVmRSS:\t 1 kB\n"
	if n, ok := Kilobytes(text, "VmHWM:"); !ok || n != 38512*1024 {
		t.Errorf("%d %v", n, ok)
	}
	if _, ok := Kilobytes(text, "VmSwap:"); ok {
		t.Error("a line that is not there is found")
	}
}
