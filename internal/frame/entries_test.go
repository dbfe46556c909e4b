package frame

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/invariants"
)

// TestEntries: what is added comes out, in order, whole in one part each, and is never
// moved; a reset one serves again without new memory.
func TestEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var e Entries
	for round := range 3 {
		var want []Entry
		var first *byte
		for i := range 3000 {
			size := r.IntN(200)
			if i%100 == 7 {
				size = r.IntN(3 * firstPart)
			}
			key, value := []byte{byte(i), byte(i >> 8)}, make([]byte, size)
			want = append(want, Entry{base.KindPut, append([]byte{0}, key...), value})
			e.Add(base.KindPut, []byte{0}, key, value)
			if i == 0 {
				first = &e.Parts()[0][0]
			}
		}
		if first != &e.Parts()[0][0] {
			t.Fatal("entries were moved")
		}
		n, size := 0, 0
		for _, part := range e.Parts() {
			for size += len(part); len(part) > 0; n++ {
				got, length := DecodeEntry(part)
				if length == 0 || !bytes.Equal(got.Key, want[n].Key) || !bytes.Equal(got.Value, want[n].Value) {
					t.Fatalf("round %d: entry %d is %v", round, n, got.Key)
				}
				part = part[length:]
			}
		}
		if n != len(want) || n != e.Len() || size != e.Bytes() {
			t.Fatalf("%d entries of %d bytes, Len %d, Bytes %d, want %d", n, size, e.Len(), e.Bytes(), len(want))
		}
		e.Reset()
	}
	fill := func(e *Entries, n int) {
		e.Reset()
		for range n {
			e.Add(base.KindPut, nil, []byte("key"), want100)
		}
	}
	many := mostFree / len(want100)
	fill(&e, many)
	if n := testing.AllocsPerRun(10, func() { fill(&e, many) }); n > 0 && !invariants.Enabled { // the race detector drops what is pooled
		t.Errorf("%v allocations to fill it again", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		var e Entries
		fill(&e, 1000)
		e.Reset()
	}); n > 0 {
		t.Errorf("%v allocations to fill another", n)
	}
	kept := make([]Entries, 30)
	for i := range kept {
		fill(&kept[i], 1000)
	}
	for i := range kept {
		kept[i].Reset()
	}
	if freeParts.room > mostFree || freeParts.room < mostFree/2 {
		t.Errorf("%d bytes are free, at most %d shall be", freeParts.room, mostFree)
	}
}

// TestResetEntries: what is gathered after a reset does not touch what others gather with
// memory that came from it.
func TestResetEntries(t *testing.T) {
	var a, b Entries
	a.Add(base.KindPut, nil, []byte("a"), want100)
	a.Reset()
	a.Reset() // gives nothing away a second time
	b.Add(base.KindPut, nil, []byte("b"), want100)
	a.Add(base.KindPut, nil, []byte("c"), want100)
	for key, e := range map[string]*Entries{"b": &b, "c": &a} {
		got, n := DecodeEntry(e.Parts()[0])
		if string(got.Key) != key || n != e.Bytes() || e.Len() != 1 {
			t.Errorf("entry %q of %d bytes, want %q of %d", got.Key, n, key, e.Bytes())
		}
	}
}

// TestCopiedEntries: a copy is the same entries, also when either has changed, and is empty when they were reset: it does not look at
// what others gather in their memory.
func TestCopiedEntries(t *testing.T) {
	var a Entries
	a.Add(base.KindPut, nil, []byte("a"), want100)
	b := a
	b.Add(base.KindPut, nil, []byte("b"), nil)
	a.Add(base.KindPut, nil, []byte("longer"), want100)
	for name, e := range map[string]*Entries{"original": &a, "copy": &b} {
		n, keys := 0, ""
		for _, part := range e.Parts() {
			for n += len(part); len(part) > 0; {
				got, length := DecodeEntry(part)
				keys, part = keys+string(got.Key)+" ", part[length:]
			}
		}
		if keys != "a b longer " || n != e.Bytes() || e.Len() != 3 {
			t.Errorf("%s: %sin %d bytes, %d of %d bytes are said", name, keys, n, e.Len(), e.Bytes())
		}
	}
	a.Reset()
	var others Entries
	others.Add(base.KindPut, nil, []byte("of others"), want100)
	if b.Len() != 0 || b.Bytes() != 0 || len(b.Parts()) != 0 {
		t.Errorf("a copy has %d entries of %d bytes after a reset", b.Len(), b.Bytes())
	}
	b.Reset()
	b.Add(base.KindPut, nil, []byte("b"), nil)
	if got, n := DecodeEntry(others.Parts()[0]); string(got.Key) != "of others" || n != others.Bytes() {
		t.Errorf("others have %q", got.Key)
	}
	if got, n := DecodeEntry(b.Parts()[0]); string(got.Key) != "b" || n != b.Bytes() || b.Len() != 1 {
		t.Errorf("the copy has %q", got.Key)
	}
}

var want100 = make([]byte, 100)

func TestOnlyDeletes(t *testing.T) {
	del := AppendEntry(nil, base.KindDelete, []byte("k"), nil)
	ranged := AppendEntry(nil, base.KindRangeDelete, []byte("a"), []byte("b"))
	put := AppendEntry(nil, base.KindPut, []byte("k"), []byte("value"))
	head := AppendHead(nil, base.KindPut, []byte("k"), []byte("ey"), 5)
	for i, c := range []struct {
		parts [][]byte
		want  bool
	}{
		{nil, false}, {[][]byte{nil, {}}, false}, {[][]byte{del}, true}, {[][]byte{append(append([]byte{}, del...), ranged...), nil, del}, true},
		{[][]byte{del, put}, false}, {[][]byte{append(append([]byte{}, del...), put...)}, false}, {[][]byte{head, []byte("value")}, false},
	} {
		if got := OnlyDeletes(c.parts); got != c.want {
			t.Errorf("case %d: %v", i, got)
		}
	}
	if whole := AppendPrefixed(nil, base.KindPut, []byte("k"), []byte("ey"), []byte("value")); string(whole) != string(head)+"value" {
		t.Errorf("%q and the value are not %q", head, whole)
	}
}

// TestMappedParts: many entries are outside the Go heap, not too many at a time, and as long as
// they are kept.
func TestMappedParts(t *testing.T) {
	const each = 20 << 20
	for deadline := time.Now().Add(10 * time.Second); mapped.Load() > 0 && time.Now().Before(deadline); {
		runtime.GC() // what tests before have left would be used first
		time.Sleep(time.Millisecond)
	}
	before := mapped.Load()
	all := make([]*Entries, (mostMapped/each + 2))
	value := func(e, i int) []byte { return bytes.Repeat([]byte{byte(e + 1), byte(i)}, 5000) }
	for n := range all {
		all[n] = new(Entries)
		for i := 0; all[n].Bytes() < each; i++ {
			all[n].Add(base.KindPut, nil, []byte("key"), value(n, i))
		}
		if now := mapped.Load(); now > mostMapped || n == 0 && now-before < each/2 {
			t.Errorf("%d bytes are mapped", now)
		}
	}
	for n, e := range all {
		i := 0
		for _, part := range e.Parts() {
			for ; len(part) > 0; i++ {
				got, length := DecodeEntry(part)
				if length == 0 || !bytes.Equal(got.Value, value(n, i)) {
					t.Fatalf("entry %d of %d is wrong", i, n)
				}
				part = part[length:]
			}
		}
		if i != e.Len() {
			t.Fatalf("%d entries, want %d", i, e.Len())
		}
	}
	room := mapped.Load()
	all[0].Reset()
	for i := 0; all[0].Bytes() < each; i++ {
		all[0].Add(base.KindPut, nil, []byte("key"), value(0, i))
	}
	if now := mapped.Load(); now > room && !invariants.Enabled { // with the race detector a sync.Pool forgets some
		t.Errorf("%d bytes are mapped to fill again what had %d", now, room)
	}
	for i, n := 0, 0; n < len(all[0].Parts()); n++ {
		for part := all[0].Parts()[n]; len(part) > 0; i++ {
			got, length := DecodeEntry(part)
			if length == 0 || !bytes.Equal(got.Value, value(0, i)) {
				t.Fatalf("entry %d that was added after a reset is wrong", i)
			}
			part = part[length:]
		}
	}
	all[0].Reset()
	next := new(Entries) // finds what that has left, though nothing more may be mapped
	for next.Bytes() < each {
		next.Add(base.KindPut, nil, []byte("key"), value(0, 0))
	}
	if len(next.mem.mapped) == 0 && !invariants.Enabled || mapped.Load() > mostMapped {
		t.Errorf("%d blocks, %d bytes are mapped", len(next.mem.mapped), mapped.Load())
	}
	next, all = nil, nil
	for until := time.Now().Add(10 * time.Second); mapped.Load() > before; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(until) {
			t.Fatalf("%d bytes stay mapped", mapped.Load()-before)
		}
	}
}
