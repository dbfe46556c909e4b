package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// Every driver keeps the same promises, so that a table compares like with like.
func TestDrivers(t *testing.T) {
	for _, d := range All() {
		for _, sync := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/sync=%v", d.Info.Name, sync), func(t *testing.T) {
				if d.Info.Absent != "" {
					t.Skip(d.Info.Absent)
				}
				if why, no := d.Info.Cannot[CanGet]; no {
					t.Skip(why)
				}
				if raceEnabled && d.Info.Name == "boltdb" {
					t.Skip("boltdb's pointer arithmetic fails the checks that -race turns on")
				}
				exercise(t, d, Options{Sync: sync})
			})
		}
	}
}

func exercise(t *testing.T, d Driver, opts Options) {
	dir := t.TempDir()
	s, err := d.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	abilities(t, d.Info, s)
	for i := range 50 {
		check(t, s.Put(testKey(i), testValue(i)))
	}
	check(t, s.Put(testKey(7), testValue(1007)))
	check(t, s.Delete(testKey(9)))
	if err := s.Get(testKey(9), nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted key answers %v, want ErrNotFound", err)
	}
	if err := s.Get(testKey(7), func([]byte) error { return errSeen }); err != errSeen {
		t.Errorf("see's error comes back as %v", err)
	}
	check(t, s.Put(testKey(9), testValue(9)))
	batch(t, s)
	contents(t, d.Info, s)
	check(t, s.Close())
	if !d.Info.Can(CanDisk) {
		return
	}
	s, err = d.Open(dir, opts)
	if err != nil {
		t.Fatal("reopen:", err)
	}
	contents(t, d.Info, s)
	check(t, s.Close())
}

var errSeen = errors.New("seen")

func abilities(t *testing.T, info Info, s Store) {
	_, batcher := s.(Batcher)
	_, viewer := s.(Viewer)
	_, keys := s.(KeyWalker)
	_, pairs := s.(PairWalker)
	_, scanner := s.(Scanner)
	_, settler := s.(Settler)
	for ability, has := range map[Ability]bool{
		CanBatch: batcher, CanView: viewer, CanKeys: keys, CanPairs: pairs, CanScan: scanner, CanSettle: settler,
	} {
		if has != info.Can(ability) {
			t.Errorf("%s: the driver has it: %v, Info says so: %v", ability, has, info.Can(ability))
		}
	}
}

// batch overwrites key 8 and adds keys 50 to 99, with buffers it spoils afterwards.
func batch(t *testing.T, s Store) {
	pairs := func(yield func(k, v []byte) bool) {
		if !yield(testKey(8), testValue(1008)) {
			return
		}
		for i := 50; i < 100; i++ {
			if !yield(testKey(i), testValue(i)) {
				return
			}
		}
	}
	b, ok := s.(Batcher)
	if ok {
		_, err := b.PutBatch(pairs)
		check(t, err)
		return
	}
	for k, v := range pairs {
		check(t, s.Put(k, v))
	}
}

func contents(t *testing.T, info Info, s Store) {
	t.Helper()
	read := func(r Reader) error {
		for i := range 100 {
			err := r.Get(testKey(i), func(v []byte) error {
				if !bytes.Equal(v, wanted(i)) {
					t.Errorf("key %d has a wrong value", i)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("key %d: %w", i, err)
			}
		}
		return nil
	}
	check(t, read(s))
	if v, ok := s.(Viewer); ok {
		check(t, v.View(read))
	}
	if w, ok := s.(KeyWalker); ok {
		var got [][]byte
		check(t, w.Keys(func(k []byte) error { got = append(got, bytes.Clone(k)); return nil }))
		walked(t, info, got)
	}
	if w, ok := s.(PairWalker); ok {
		var got [][]byte
		check(t, w.Pairs(func(k, v []byte) error {
			var i int
			fmt.Sscanf(string(k), "key%d", &i)
			if !bytes.Equal(v, wanted(i)) {
				t.Errorf("walk: key %d has a wrong value", i)
			}
			got = append(got, bytes.Clone(k))
			return nil
		}))
		walked(t, info, got)
	}
}

func walked(t *testing.T, info Info, got [][]byte) {
	t.Helper()
	seen := map[string]bool{}
	for i, k := range got {
		seen[string(k)] = true
		if info.Can(CanOrder) && string(k) != string(testKey(i)) {
			t.Fatalf("place %d of the walk is %s", i, k)
		}
	}
	if len(seen) != 100 || len(got) != 100 {
		t.Errorf("the walk shows %d keys, %d different, want 100", len(got), len(seen))
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wanted(i int) []byte {
	if i == 7 || i == 8 {
		i += 1000
	}
	return testValue(i)
}

func testKey(i int) []byte   { return fmt.Appendf(nil, "key%05d", i) }
func testValue(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "value %d;", i), 100) }

func TestChoose(t *testing.T) {
	got, err := Choose([]string{"pogreb", "bbolt"})
	if err != nil || len(got) != 2 || got[0].Info.Name != "bbolt" {
		t.Errorf("Choose = %v, %v", Names(got), err)
	}
	if _, err := Choose([]string{"nosuch"}); err == nil {
		t.Error("an unknown engine is accepted")
	}
}
