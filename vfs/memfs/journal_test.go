package memfs_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

func TestJournalNamesMutations(t *testing.T) {
	f := memfs.New()
	check(t, f.MkdirAll("/d"))
	h := create(t, f, "/d/tmp", "abc")
	check(t, h.Preallocate(3, 5))
	check(t, h.Sync())
	check(t, f.Rename("/d/tmp", "/d/a"))
	check(t, f.Link("/d/a", "/d/b"))
	check(t, f.SyncDir("/d"))
	check(t, f.Remove("/d/b"))
	var got []string
	for _, op := range f.Journal().Ops() {
		got = append(got, op.String())
	}
	want := []string{
		"0: mkdir /d", "1: create /d/tmp", "2: write /d/tmp [0,+3)", "3: preallocate /d/tmp [3,+5)", "4: sync /d/tmp",
		"5: rename /d/tmp (/d/a)", "6: link /d/b (/d/a)", "7: syncdir /d", "8: remove /d/b",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	if op := f.Journal().Op(2); op.Kind != memfs.OpWrite || op.Entry() || !f.Journal().Op(1).Entry() {
		t.Fatal(op)
	}
}

func TestPending(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", "1")
	write(t, h, "2", 1)
	kinds := func(at int) (s []string) {
		for _, op := range f.Journal().Pending(at) {
			s = append(s, op.Kind.String())
		}
		return s
	}
	if got := kinds(3); !slices.Equal(got, []string{"create", "write", "write"}) {
		t.Fatal(got)
	}
	check(t, h.Sync())
	if got := kinds(4); !slices.Equal(got, []string{"create"}) {
		t.Fatal(got)
	}
	check(t, f.SyncDir("/"))
	if got := kinds(5); len(got) != 0 {
		t.Fatal(got)
	}
	if got := kinds(2); len(got) != 2 {
		t.Fatal(got)
	}
}

// TestOnlyMutationsCount: reads of the disk and failed calls are no mutations.
func TestOnlyMutationsCount(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "1")
	before := f.Journal().Len()
	_, _ = f.Create("a")
	_, _ = f.List("/")
	_, _ = f.Stat("a")
	_ = f.Remove("none")
	_ = f.Rename("a", "a")
	_ = f.MkdirAll("/")
	_, _ = h.ReadAt(make([]byte, 1), 0)
	_, _ = h.WriteAt(nil, 0)
	_ = h.Close()
	if f.Journal().Len() != before {
		t.Fatal(f.Journal().Ops()[before:])
	}
}

func TestTrimKeepsPending(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "old")
	gone := create(t, f, "gone", "x")
	check(t, f.Remove("gone"))
	write(t, h, "new", 0)
	create(t, f, "b", "")
	check(t, f.SyncDir("/"))
	create(t, f, "c", "")
	before := states(t, f)
	old := f.Journal()
	j := f.TrimJournal()
	if j.Len() != 0 || j != f.Journal() {
		t.Fatal("not a new journal")
	}
	if after := states(t, f); fmt.Sprint(after) != fmt.Sprint(before) {
		// garbage depends on the ordinal, so compare what is not garbage
		for _, want := range []string{"a=old b=", "a=new b=", "a=new b= c=", "a=old b= c=", "a=n b= c="} {
			if after[want] != before[want] {
				t.Fatalf("%q: %v before, %v after", want, before[want], after[want])
			}
		}
	}
	if ops := j.Pending(0); len(ops) != 2 || ops[0].Ordinal >= 0 {
		t.Fatal(ops)
	}
	write(t, gone, "still open", 0)
	check(t, gone.Sync())
	check(t, h.Sync())
	only(t, f, "a=new b=", "a=new b= c=")
	if old.Len() == 0 || show(t, old.State(old.Len(), memfs.Everything())) != "a=new b= c=" {
		t.Fatal("the old journal is gone")
	}
}

func TestStopAndStartJournal(t *testing.T) {
	f := memfs.New()
	f.StopJournal()
	if f.Journal() != nil {
		t.Fatal("still recording")
	}
	h := create(t, f, "a", "1")
	check(t, h.Sync())
	check(t, f.Remove("a"))
	create(t, f, "b", "1")
	f.StartJournal()
	only(t, f, "b=1")
	write(t, h, "orphan", 0)
	check(t, h.Sync())
	only(t, f, "b=1")
}

func TestCrashPointOutside(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("a crash point beyond the journal was accepted")
		}
	}()
	memfs.New().Journal().State(1, memfs.SyncedOnly())
}

// TestLongJournalAtRandom: going back and forth over the marks changes nothing.
func TestLongJournalAtRandom(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "")
	for i := range 1000 {
		write(t, h, fmt.Sprintf("%04d", i), int64(i%7)*4)
		if i%5 == 0 {
			check(t, h.Sync())
		}
	}
	j := f.Journal()
	forward := make([]uint64, j.Len()+1)
	for at := range forward {
		forward[at] = j.State(at, memfs.Random(1)).Hash()
	}
	for i := range forward {
		at := i * 617 % len(forward)
		if j.State(at, memfs.Random(1)).Hash() != forward[at] {
			t.Fatalf("the state after %d mutations depends on where the journal was before", at)
		}
	}
}

// TestConcurrentUse: a workload, and images of it, at once (for the race detector).
func TestConcurrentUse(t *testing.T) {
	f := memfs.New()
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			h, err := f.Create(fmt.Sprint("f", w))
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 200 {
				_, _ = h.WriteAt([]byte("some bytes"), int64(i)*10)
				if i%20 == 0 {
					_ = h.Sync()
					_ = f.SyncDir("/")
				}
			}
		})
		wg.Go(func() {
			for i := range 100 {
				image := f.Crash(memfs.Random(uint64(i)))
				_ = image.Hash()
				_ = image.WriteFile("x", []byte("y"))
				_ = f.Clone().Remove("f0")
				_ = f.Hash()
			}
		})
	}
	wg.Wait()
}

func TestChoicesAreNamed(t *testing.T) {
	for want, c := range map[string]memfs.Choice{
		"SyncedOnly grown entries=kept":    memfs.SyncedOnly().Grown().EntriesKept(),
		"Torn(2, 7) fill=garbage":          memfs.Garbage(2, 7),
		"Torn(2, 7) fill=zeros later=kept": memfs.TornHole(2, 7).Filled(memfs.FillZeros),
		"TornSectors(1, 0xa) later=kept":   memfs.TornSectors(1, 10).LaterKept(),
		"Random(5) entries=lost":           memfs.Random(5).EntriesLost(),
		"DropOne(1)":                       memfs.DropOne(1),
		"KeepOne(1)":                       memfs.KeepOne(1),
		"Everything":                       memfs.Everything(),
	} {
		if c.String() != want {
			t.Errorf("%q, want %q", c, want)
		}
	}
}

func TestChoicesStopEarly(t *testing.T) {
	f := memfs.New()
	create(t, f, "a", strings.Repeat("x", 2000))
	all := 0
	for range f.Journal().Choices(2, thorough) {
		all++
	}
	for stop := 1; stop < all; stop += 37 {
		n := 0
		for range f.Journal().Choices(2, thorough) {
			if n++; n == stop {
				break
			}
		}
	}
	if all < 2000 {
		t.Fatalf("only %d choices for a write torn at every byte", all)
	}
}

// TestDraw: what is drawn are choices of the plan, no one twice, each as likely as another.
func TestDraw(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", strings.Repeat("x", 30))
	write(t, h, strings.Repeat("y", 40), 500) // in two sectors
	create(t, f, "b", "z")
	j := f.Journal()
	for _, plan := range []memfs.Plan{thorough, {EveryByte: 1}, {}} {
		at := map[memfs.Choice]int{} // places of equal choices add up
		all := slices.Collect(j.Choices(j.Len(), plan))
		for _, c := range all {
			at[c]++
		}
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{len(all), len(all) + 5} {
			got := map[memfs.Choice]int{}
			for _, c := range j.Draw(r, j.Len(), plan, n) {
				got[c]++
			}
			if !maps.Equal(got, at) {
				t.Errorf("%+v: all %d drawn are not all", plan, len(all))
			}
		}
		const each = 200
		first, some := map[memfs.Choice]int{}, map[memfs.Choice]int{}
		for range len(all) * each / 5 {
			drawn := j.Draw(r, j.Len(), plan, 5)
			first[drawn[0]] += 5
			for _, c := range drawn {
				some[c]++
			}
		}
		for c, n := range at {
			if got := some[c]; got < n*each*6/10 || got > n*each*14/10 {
				t.Errorf("%+v: %v was drawn %d times, want about %d", plan, c, got, n*each)
			}
			if first[c] == 0 {
				t.Errorf("%+v: %v was never drawn first", plan, c)
			}
		}
	}
}

// TestCostOfStates: a state of a store of 1 MiB in ten files, with one torn write,
// copies the torn chunks and no others. BenchmarkState has the time.
func TestCostOfStates(t *testing.T) {
	f, _ := megabyte(t)
	j := f.Journal()
	if n := testing.AllocsPerRun(100, func() { j.State(j.Len(), memfs.TornPrefix(0, 1000)) }); n > 200 {
		t.Fatalf("a state takes %v allocations", n)
	}
}

func megabyte(t testing.TB) (*memfs.FS, vfs.File) {
	f := memfs.New()
	var h vfs.File
	for i := range 10 {
		h = create(t, f, fmt.Sprint("file", i), strings.Repeat(fmt.Sprint(i), 100<<10))
		check(t, h.Sync())
	}
	check(t, f.SyncDir("/"))
	write(t, h, strings.Repeat("n", 4000), 50000)
	return f, h
}

func BenchmarkState(b *testing.B) {
	f, _ := megabyte(b)
	j := f.Journal()
	for i := range b.N {
		j.State(j.Len(), memfs.TornPrefix(0, int64(i%4000)))
	}
}

func BenchmarkStateAndHash(b *testing.B) {
	f, _ := megabyte(b)
	j := f.Journal()
	for i := range b.N {
		j.State(j.Len(), memfs.TornPrefix(0, int64(i%4000))).Hash()
	}
}
