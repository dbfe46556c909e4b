package workload

import (
	"bytes"
	"testing"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// memoryStore keeps pairs; a test spoils them as a crash would.
type memoryStore struct{ mapReader }

func (m memoryStore) Put(key, value []byte) error {
	id, _ := data.ParseKey(key)
	m.mapReader[id] = bytes.Clone(value)
	return nil
}
func (m memoryStore) Delete(key []byte) error {
	id, _ := data.ParseKey(key)
	delete(m.mapReader, id)
	return nil
}
func (m memoryStore) Close() error { return nil }
func (m memoryStore) PutBatch(pairs engine.Pairs) (string, error) {
	for k, v := range pairs {
		m.Put(k, v)
	}
	return "", nil
}

// crashed writes commits 0 to n-1, all acknowledged.
func crashed(t *testing.T, n uint64) (*crashModel, memoryStore) {
	t.Helper()
	m, s := newCrashModel(testParams, engine.Info{}), memoryStore{mapReader{}}
	for seq := range n {
		if err := m.commit(s, seq); err != nil {
			t.Fatal(err)
		}
	}
	m.acknowledge(n)
	return m, s
}

func TestCrashModelFindsWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		spoil      func(*crashModel, memoryStore)
		lost, torn int
		void       bool
	}{
		"nothing missing":                   {func(*crashModel, memoryStore) {}, 0, 0, false},
		"under way and there":               {func(m *crashModel, s memoryStore) { m.commit(s, 1000) }, 0, 0, false},
		"the last put missing":              {func(m *crashModel, s memoryStore) { m.undo(s, 998) }, 1, 0, false},
		"a put rolled back to nothing":      {func(m *crashModel, s memoryStore) { delete(s.mapReader, keysOf(998, true)[0]) }, -1, 1, false},
		"one key of the last batch missing": {func(m *crashModel, s memoryStore) { m.undoKey(s, 999, keysOf(999, true)[3]) }, 1, 1, false},
		"the whole last batch missing":      {func(m *crashModel, s memoryStore) { m.undo(s, 999) }, 1, 0, false},
		"a deleted key is back":             {func(m *crashModel, s memoryStore) { m.undo(s, 994) }, 1, 0, false},
		"a delete under way and there":      {func(m *crashModel, s memoryStore) { m.next = 1004; m.commit(s, 1004) }, 0, 0, false},
		"a long value missing":              {func(m *crashModel, s memoryStore) { m.undo(s, 950) }, 1, 0, false},
		"a version never written":           {func(m *crashModel, s memoryStore) { s.mapReader[3] = m.source.Value(3, 5000, m.size) }, 0, 0, true},
		"rubbish":                           {func(m *crashModel, s memoryStore) { s.mapReader[3] = []byte("rubbish") }, 0, 0, true},
	} {
		m, s := crashed(t, 1000)
		c.spoil(m, s)
		err := m.check(s)
		if isWrongAnswer(err) != c.void {
			t.Errorf("%s: %v", name, err)
		}
		if c.lost >= 0 && m.lost != c.lost || c.lost < 0 && m.lost < 2 {
			t.Errorf("%s: %d lost, want %d", name, m.lost, c.lost)
		}
		if m.torn != c.torn {
			t.Errorf("%s: %d torn, want %d", name, m.torn, c.torn)
		}
	}
}

// undo takes a commit back, as if it had not happened.
func (m *crashModel) undo(s memoryStore, seq uint64) {
	for _, id := range keysOf(seq, true) {
		m.undoKey(s, seq, id)
	}
}

func (m *crashModel) undoKey(s memoryStore, seq, id uint64) {
	for before := seq; before > 0; before-- {
		for _, k := range keysOf(before-1, true) {
			if k == id {
				if isDelete(before - 1) {
					delete(s.mapReader, id)
				} else {
					s.mapReader[id] = m.written(id, before-1)
				}
				return
			}
		}
	}
	delete(s.mapReader, id)
}

func TestCrashModelGoesOnAfterAKill(t *testing.T) {
	m, s := crashed(t, 1000)
	m.undo(s, 998)
	if err := m.check(s); err != nil || m.lost != 1 || m.next != 1001 || m.begun != 1001 {
		t.Fatalf("%v, %d lost, next %d", err, m.lost, m.next)
	}
	if err := m.check(s); err != nil || m.lost != 1 {
		t.Errorf("the same loss counts again: %d, %v", m.lost, err)
	}
}
