package workload

import (
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
)

func TestAReaderKnowsWhatTheWriterCanHaveWritten(t *testing.T) {
	p := &participant{expectation: expect(Params{N: 500, ValueBytes: 50, Seed: 1}), seen: make([]uint64, 500)}
	value := func(v uint64) []byte { return p.source.Value(7, v, 50) }
	for _, v := range []uint64{0, 0, 3, 10} {
		if err := p.plausible(7, value(v)); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
	for name, got := range map[string][]byte{"older than seen": value(9), "never written": value(11), "another key's": p.source.Value(8, 1, 50), "empty": nil} {
		if err := p.plausible(7, got); !isWrong(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p.acc.Newest != 10 {
		t.Errorf("newest %d", p.acc.Newest)
	}
}

func TestLastVersion(t *testing.T) {
	for _, n := range []int{30, 500, 4999} {
		last := make([]uint64, n)
		for j := range processOps { // as participant.write does
			last[j%n] = uint64(1 + j/n)
		}
		for id, want := range last {
			if got := lastVersion(id, n); got != want {
				t.Fatalf("key %d of %d: %d, want %d", id, n, got, want)
			}
		}
	}
}

func TestCellsOfTheSuites(t *testing.T) {
	for name, want := range map[string][2]int{"durable": {3, 0}, "memory": {0, 1}, "lean": {0, 1}, "processes": {1, 1}, "crash": {1, 1}, "latency": {1, 1}} {
		w, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		on, off := w.Cells(Scale{Sync: []bool{true}}), w.Cells(Scale{Sync: []bool{false}})
		if len(on) != want[0] || len(off) != want[1] {
			t.Errorf("%s: %d cells with sync on, %d with sync off", name, len(on), len(off))
		}
		for _, p := range append(on, off...) {
			if p.Memory > 0 && p.DataBytes() < 4*p.Memory {
				t.Errorf("%s: %d bytes of data, %d of memory", name, p.DataBytes(), p.Memory)
			}
		}
	}
}

// toldStore tells its reader, after some gets, that it is enough.
type toldStore struct {
	engine.Store
	mapReader
	gets, after int
	commands    chan string
}

func (s *toldStore) Get(key []byte, see func([]byte) error) error {
	if s.gets++; s.gets == s.after {
		s.commands <- "enough"
	}
	return s.mapReader.Get(key, see)
}

// A reader reads until the writer has ended, and processOps gets at least.
func TestReadersReadUntilTheyHaveEnough(t *testing.T) {
	for after, want := range map[int]int{1: processOps, processOps: processOps, 4 * processOps: 4 * processOps} {
		p := &participant{expectation: expect(Params{N: 30, ValueBytes: 50, Seed: 1}), seen: make([]uint64, 30)}
		s := &toldStore{mapReader: filled(p.expectation), after: after, commands: make(chan string, 1)}
		p.store, p.commands = s, s.commands
		if err := p.read(); err != nil {
			t.Fatal(err)
		}
		if !p.acc.Enough || p.acc.Gets != s.gets || s.gets < want || s.gets > want+readsAtOnce {
			t.Errorf("told after %d gets: %+v, %d gets, want %d", after, p.acc, s.gets, want)
		}
	}
}
