package workload

import (
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// haunted is a store that, opened again, shows in its iterations a pair that nobody has put,
// or leaves the first one out. Its gets are right.
type haunted struct {
	engine.Store
	engine.Batcher
	engine.Viewer
	engine.KeyWalker
	engine.PairWalker
	engine.Scanner
	ghost, again bool
}

func (h haunted) Pairs(see func(key, value []byte) error) error {
	first := true
	err := h.PairWalker.Pairs(func(key, value []byte) error {
		if first && h.again && !h.ghost {
			first = false
			return nil
		}
		return see(key, value)
	})
	if err == nil && h.again && h.ghost {
		err = see([]byte("a ghost"), []byte("boo"))
	}
	return err
}

// hauntedBolt haunts what is opened in a directory more than once.
func hauntedBolt(t *testing.T, ghost bool) engine.Driver {
	d, err := engine.Find("bbolt")
	if err != nil {
		t.Fatal(err)
	}
	lying, opened := d, map[string]bool{}
	lying.Open = func(dir string, opts engine.Options) (engine.Store, error) {
		s, err := d.Open(dir, opts)
		if err != nil {
			return nil, err
		}
		h := haunted{s, s.(engine.Batcher), s.(engine.Viewer), s.(engine.KeyWalker), s.(engine.PairWalker), s.(engine.Scanner), ghost, opened[dir]}
		opened[dir] = true
		return h, nil
	}
	return lying
}

// After the last close a walk shows what was put and nothing else.
func TestAWalkAfterTheLastCloseIsExact(t *testing.T) {
	for _, name := range []string{"w1/sound", "w1/published", "w2/sound", "w4/sound", "w4/published", "ycsb", "load", "large", "durable", "latency", "sustained"} {
		w, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		p := w.Cells(Scale{Counts: []int{40}, Sync: []bool{name == "durable"}, Seed: 1, Seconds: 0.2})[0]
		for _, ghost := range []bool{true, false} {
			if name == "large" && !ghost {
				continue // it ends with nothing that could be left out
			}
			_, err := RunCell(w, hauntedBolt(t, ghost), t.TempDir(), p)
			if want := map[bool]string{true: `"a ghost" is no key of this set`, false: "iteration: "}[ghost]; !isWrong(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, with a ghost %v: %v, want %s", name, ghost, err, want)
			}
		}
	}
}
