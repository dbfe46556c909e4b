package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
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

func (m *model) clone() *model {
	c := &model{keys: slices.Clone(m.keys), values: make(map[string]string, len(m.values))}
	for k, v := range m.values {
		c.values[k] = v
	}
	return c
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

// TestModel runs random operations against a store small enough in memory that
// flushes and compactions happen all the time, and against a sorted map.
func TestModel(t *testing.T) {
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	opts := &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed}
	db, err := cairn.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { db.Close() }()
	m := newModel()
	type snap struct {
		tx *cairn.Tx
		m  *model
	}
	var snaps []snap
	key := func() string { return fmt.Sprintf("k%05d", r.IntN(4000)) }
	value := func() string { return string(bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(400))) }
	for op := range 60000 {
		switch p := r.IntN(1000); {
		case p < 600:
			k, v := key(), value()
			if err := db.Put([]byte(k), []byte(v)); err != nil {
				t.Fatal(err)
			}
			m.put(k, v)
		case p < 750:
			k := key()
			if err := db.Delete([]byte(k)); err != nil {
				t.Fatal(err)
			}
			m.delete(k)
		case p < 756:
			low, high := key(), key()
			b := cairn.NewBatch()
			k, v := key(), value()
			b.Put([]byte(k), []byte(v))
			b.DeleteRange(cairn.Range{Low: []byte(low), High: []byte(high)})
			k2, v2 := key(), value()
			b.Put([]byte(k2), []byte(v2))
			if err := db.Write(b); err != nil {
				t.Fatal(err)
			}
			m.put(k, v)
			m.deleteRange(low, high)
			m.put(k2, v2)
		case p < 990:
			k := key()
			v, err := db.Get([]byte(k))
			if want, ok := m.values[k]; ok != (err == nil) || string(v) != want || !ok && !errors.Is(err, cairn.ErrNotFound) {
				t.Fatalf("op %d: get %s: %q, %v; want %q %v", op, k, v, err, want, ok)
			}
		case p < 994 && len(snaps) < 4:
			tx, err := db.Begin(false)
			if err != nil {
				t.Fatal(err)
			}
			snaps = append(snaps, snap{tx, m.clone()})
		case p < 998 && len(snaps) > 0:
			i := r.IntN(len(snaps))
			snaps[i].m.check(t, snaps[i].tx)
			snaps[i].tx.Rollback()
			snaps = slices.Delete(snaps, i, i+1)
		case p == 999 && op%10 == 0:
			for _, s := range snaps {
				s.m.check(t, s.tx)
				s.tx.Rollback()
			}
			snaps = nil
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if db, err = cairn.Open(dir, opts); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range snaps {
		s.m.check(t, s.tx)
		s.tx.Rollback()
	}
	if err := db.View(func(tx *cairn.Tx) error { m.check(t, tx); return nil }); err != nil {
		t.Fatal(err)
	}
}
