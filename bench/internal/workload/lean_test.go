package workload

import (
	"strings"
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// fickle is a store whose reads give other values, or that has lost a key.
type fickle struct {
	engine.Store
	engine.KeyWalker
	engine.Batcher
	get  func(see func([]byte) error) error
	keys bool
}

func (f fickle) Get(key []byte, see func([]byte) error) error {
	if f.get != nil {
		return f.get(see)
	}
	return f.Store.Get(key, see)
}

func (f fickle) Keys(see func([]byte) error) error {
	first := f.keys
	return f.KeyWalker.Keys(func(key []byte) error {
		if first {
			first = false
			return nil
		}
		return see(key)
	})
}

// What is computed and not kept in lists is compared all the same.
func TestLeanFindsWrongAnswers(t *testing.T) {
	d, err := engine.Find("bbolt")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Find("lean")
	if err != nil {
		t.Fatal(err)
	}
	p := w.Cells(Scale{Counts: []int{3000}, Sync: []bool{false}, Seed: 1})[0]
	for want, f := range map[string]fickle{
		"":                   {},
		"value 00, want":     {get: func(see func([]byte) error) error { return see([]byte{0}) }},
		"lost, it was":       {get: func(func([]byte) error) error { return engine.ErrNotFound }},
		"key 0 of the scan:": {keys: true},
	} {
		lying := d
		lying.Open = func(dir string, opts engine.Options) (engine.Store, error) {
			s, err := d.Open(dir, opts)
			if err != nil {
				return nil, err
			}
			f.Store, f.KeyWalker, f.Batcher = s, s.(engine.KeyWalker), s.(engine.Batcher)
			return f, nil
		}
		rec := NewRecorder("")
		err := w.Run(rec, lying, t.TempDir(), p)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, c := range leanColumns {
			if _, ok := rec.Metrics[c.Key]; want == "" && !ok && rec.NA[c.Key] == "" {
				t.Errorf("no figure for %s", c.Key)
			}
		}
	}
}
