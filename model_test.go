package cairn_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/cairndb/cairn"
)

// model is a sorted map: what a store must be equal to.
type model struct {
	keys   []string
	values map[string]string
}

func newModel() *model { return &model{values: map[string]string{}} }

func (m *model) put(k, v string) {
	if _, ok := m.values[k]; !ok {
		i, _ := slices.BinarySearch(m.keys, k)
		m.keys = slices.Insert(m.keys, i, k)
	}
	m.values[k] = v
}

func (m *model) delete(k string) {
	if _, ok := m.values[k]; ok {
		i, _ := slices.BinarySearch(m.keys, k)
		m.keys = slices.Delete(m.keys, i, i+1)
		delete(m.values, k)
	}
}

func (m *model) deleteRange(low, high string) {
	from, _ := slices.BinarySearch(m.keys, low)
	to, _ := slices.BinarySearch(m.keys, high)
	for _, k := range m.keys[from:max(from, to)] {
		delete(m.values, k)
	}
	m.keys = slices.Delete(m.keys, from, max(from, to))
}

// check compares the whole store, in both directions, with the model.
func (m *model) check(t *testing.T, tx *cairn.Tx) {
	t.Helper()
	i := 0
	for k, v := range tx.Scan(cairn.Range{}) {
		if i >= len(m.keys) || string(k) != m.keys[i] || string(v) != m.values[string(k)] {
			t.Fatalf("scan: row %d of %d is %q=%q, want %q", i, len(m.keys), k, v, m.at(i))
		}
		i++
	}
	if err := tx.Err(); err != nil || i != len(m.keys) {
		t.Fatalf("scan ended after %d of %d rows: %v", i, len(m.keys), err)
	}
	for k, v := range tx.ScanBackward(cairn.Range{}) {
		i--
		if i < 0 || string(k) != m.keys[i] || string(v) != m.values[string(k)] {
			t.Fatalf("backward scan: row %d is %q, want %q", i, k, m.at(i))
		}
	}
	if err := tx.Err(); err != nil || i != 0 {
		t.Fatalf("backward scan ended with %d rows left: %v", i, err)
	}
}

func (m *model) at(i int) string {
	if i < 0 || i >= len(m.keys) {
		return "(nothing)"
	}
	return m.keys[i]
}

func testSeed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("CAIRN_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("CAIRN_SEED=%d repeats this run", seed)
	return seed
}
