package memfs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// thorough enumerates everything that the small workloads here can leave.
var thorough = memfs.Plan{EveryByte: 4096, Deep: true, Random: 64}

// states returns every distinct image that a crash now may leave, shown.
func states(t testing.TB, f *memfs.FS) map[string]bool {
	t.Helper()
	return statesAt(t, f, f.Journal().Len())
}

func statesAt(t testing.TB, f *memfs.FS, at int) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	j := f.Journal()
	for c := range j.Choices(at, thorough) {
		seen[show(t, j.State(at, c))] = true
	}
	return seen
}

// only checks that exactly these images are reachable.
func only(t testing.TB, f *memfs.FS, want ...string) {
	t.Helper()
	got := slices.Sorted(maps.Keys(states(t, f)))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("a crash may leave\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestSyncedDataAndNameSurvive(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "abc")
	only(t, f, "a=abc")
}

func TestUnsyncedNameCanBeLost(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", "abc")
	check(t, h.Sync())
	only(t, f, "", "a=abc") // Sync of the file says nothing about its name
}

func TestUnsyncedDataCanBeLostUnderDurableName(t *testing.T) {
	f := memfs.New()
	create(t, f, "a", "ab")
	check(t, f.SyncDir("/"))
	got := states(t, f)
	for _, want := range []string{"a=", "a=ab", "a=a", "a=..", "a=a."} {
		if !got[want] {
			t.Errorf("%q is not reachable", want)
		}
	}
	for state := range got {
		if !strings.HasPrefix(state, "a=") {
			t.Errorf("the durable name is lost: %q", state)
		}
	}
}

// TestSyncCountsOnceItReturned: at the ordinal of the sync itself nothing is synced.
func TestSyncCountsOnceItReturned(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", "x")
	check(t, f.SyncDir("/"))
	check(t, h.Sync())
	j := f.Journal()
	at := slices.IndexFunc(j.Ops(), func(op memfs.Op) bool { return op.Kind == memfs.OpSync })
	if got := show(t, j.State(at, memfs.SyncedOnly())); got != "a=" {
		t.Fatalf("before the sync: %q", got)
	}
	if got := show(t, j.State(at+1, memfs.SyncedOnly())); got != "a=x" {
		t.Fatalf("after the sync: %q", got)
	}
}

// TestSyncCoversItsFileOnly: a sync of one file must not save another, nor names.
func TestSyncCoversItsFileOnly(t *testing.T) {
	f := memfs.New()
	a, b := durable(t, f, "a", "1"), durable(t, f, "b", "1")
	write(t, a, "2", 0)
	write(t, b, "2", 0)
	check(t, a.Sync())
	if got := states(t, f); !got["a=2 b=1"] || !got["a=2 b=2"] || got["a=1 b=1"] || got["a=1 b=2"] {
		t.Fatal(got)
	}
}

// TestSyncThroughAnyHandle: a sync is of the file, whoever wrote it and whatever
// its name.
func TestSyncThroughAnyHandle(t *testing.T) {
	f := memfs.New()
	a := durable(t, f, "a", "1")
	check(t, f.Link("a", "b"))
	check(t, f.SyncDir("/"))
	write(t, a, "2", 0)
	b, err := f.Open("b")
	check(t, err)
	check(t, b.Sync())
	only(t, f, "a=2 b=2")
}

func TestOverwriteTornAtEveryByte(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", strings.Repeat("o", 1000))
	write(t, h, strings.Repeat("n", 700), 100)
	got := states(t, f)
	for n := range 701 {
		want := "a=" + strings.Repeat("o", 100) + strings.Repeat("n", n) + strings.Repeat("o", 900-n)
		if !got[want] {
			t.Fatalf("the state torn after %d bytes is not reachable", n)
		}
	}
	for state := range got {
		if !strings.HasPrefix(state[2:], strings.Repeat("o", 100)) || !strings.HasSuffix(state, strings.Repeat("o", 200)) {
			t.Fatalf("bytes outside the write changed: %q", state)
		}
	}
}

func TestTornInSectors(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", strings.Repeat("o", 4*512))
	write(t, h, strings.Repeat("n", 3*512), 256) // sectors 0 to 3, the outer ones half
	j := f.Journal()
	i := len(j.Pending(j.Len())) - 1
	for mask := range uint64(16) {
		data, err := f.Crash(memfs.TornSectors(i, mask)).ReadFile("a")
		check(t, err)
		for at, b := range data {
			in := at >= 256 && at < 256+3*512 && mask>>(at/512)&1 == 1
			if in != (b == 'n') {
				t.Fatalf("mask %04b: byte %d is %q", mask, at, b)
			}
		}
	}
}

func TestTornAreaZerosOrGarbage(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "oooooooo")
	write(t, h, "nnnnnnnn", 4)
	i := len(f.Journal().Pending(f.Journal().Len())) - 1
	if got := show(t, f.Crash(memfs.TornPrefix(i, 2))); got != "a=oooonnoo" {
		t.Errorf("old: %q", got)
	}
	if got := show(t, f.Crash(memfs.TornPrefix(i, 2).Filled(memfs.FillZeros))); got != "a=oooonn......" {
		t.Errorf("zeros: %q", got)
	}
	if got := show(t, f.Crash(memfs.TornPrefix(i, 6))); got != "a=oooonnnnnn" {
		t.Errorf("beyond the old end: %q", got)
	}
	data, err := f.Crash(memfs.Garbage(i, 2)).ReadFile("a")
	check(t, err)
	if len(data) != 12 || string(data[:6]) != "oooonn" || string(data[6:]) == "nnnnnn" || string(data[6:8]) == "oo" {
		t.Errorf("garbage: %q", data)
	}
}

func TestHoleBeforeValidData(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "")
	write(t, h, "one", 0)
	write(t, h, "two", 3)
	write(t, h, "end", 6)
	got := states(t, f)
	for _, want := range []string{
		"a=...two", "a=...twoend", "a=one...end", "a=......end", "a=on.twoend", "a=o..twoend", "a=onetwo", "a=",
		"a=onet..end", "a=onetwo...",
	} {
		if !got[want] {
			t.Errorf("%q is not reachable", want)
		}
	}
}

// TestOverlapKeepsOrder: of two writes to the same bytes the later one wins when
// both survive.
func TestOverlapKeepsOrder(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "")
	write(t, h, "1111", 0)
	write(t, h, "22", 1)
	j := f.Journal()
	for want, c := range map[string]memfs.Choice{
		"a=1221": memfs.Everything(), "a=.22": memfs.DropOne(0), "a=1111": memfs.DropOne(1), "a=": memfs.SyncedOnly(),
		"a=....": memfs.SyncedOnly().Grown(), "a=.22.": memfs.DropOne(0).Grown(), "a=122": memfs.TornHole(0, 1),
		"a=1121": memfs.TornSectors(1, 0),
	} {
		got := show(t, j.State(j.Len(), c))
		if want == "a=1121" {
			want = "a=1111" // a write of which no sector arrived is lost
		}
		if got != want {
			t.Errorf("%v leaves %q, want %q", c, got, want)
		}
	}
}

func TestSizeDurableOnlyWithSync(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "x")
	check(t, h.Preallocate(0, 8))
	got := states(t, f)
	if !got["a=x"] || !got["a=x......."] {
		t.Fatal(got)
	}
	check(t, h.Sync())
	only(t, f, "a=x.......")
	info, err := f.Crash(memfs.SyncedOnly()).Stat("a")
	check(t, err)
	if info.Allocated < 8 {
		t.Fatalf("the reservation is lost: %+v", info)
	}
}

// TestPreallocationShowsNoGarbage: unwritten extents read as zeros or not at all.
func TestPreallocationShowsNoGarbage(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "")
	check(t, h.Preallocate(0, 600))
	for state := range states(t, f) {
		if strings.Trim(state, ".") != "a=" {
			t.Fatalf("%q", state)
		}
	}
}

// TestEverySyncedByteSurvives runs random workloads and checks, at every crash point
// and in every state, the bytes that were synced and not overwritten since.
func TestEverySyncedByteSurvives(t *testing.T) {
	for seed := range uint64(6) {
		f, w := memfs.New(), newWorkload(seed)
		w.run(t, f, 30)
		j := f.Journal()
		for at := range j.Len() + 1 {
			for c := range j.Choices(at, memfs.Plan{Random: 10, Seed: seed}) {
				if err := w.judge(at, j.State(at, c)); err != nil {
					t.Fatalf("seed %d, crash after %d mutations, %v: %v", seed, at, c, err)
				}
			}
		}
	}
}

// TestFailedSyncDoomsPages: after a failed fsync another one returns nil and yet
// saves nothing of what was dirty then.
func TestFailedSyncDoomsPages(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "oooo")
	write(t, h, "nn", 0)
	broken := errors.New("medium error")
	f.FailSyncs(func(string) error { return broken })
	if err := h.Sync(); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	f.FailSyncs(nil)
	write(t, h, "s", 3)
	check(t, h.Sync())
	if got := show(t, f); got != "a=nnos" {
		t.Fatalf("the cache shows %q", got)
	}
	if got := states(t, f); !got["a=ooos"] || !got["a=nnos"] || got["a=nnoo"] || got["a=oooo"] {
		t.Fatal(got)
	}
	write(t, h, "N", 1) // written anew, so covered
	check(t, h.Sync())
	got := states(t, f) // the first byte is still at risk: old, new, zero or garbage
	if !got["a=oNos"] || !got["a=nNos"] {
		t.Fatal(got)
	}
	for state := range got {
		if len(state) != 6 || !strings.HasSuffix(state, "Nos") {
			t.Fatal(state)
		}
	}
	data, err := f.ReadFile("a")
	check(t, err)
	g := durable(t, f, "b", string(data)) // the way out: a new file
	check(t, g.Close())
	for state := range states(t, f) {
		if !strings.HasSuffix(state, "b=nNos") {
			t.Fatal(state)
		}
	}
}

func TestStateIsDeterministic(t *testing.T) {
	f := memfs.New()
	newWorkload(7).run(t, f, 30)
	j := f.Journal()
	hashes := map[string]uint64{}
	for _, at := range []int{j.Len(), 3, j.Len() / 2} {
		for c := range j.Choices(at, thorough) {
			hashes[fmt.Sprint(at, c)] = j.State(at, c).Hash()
		}
	}
	for _, at := range []int{j.Len() / 2, j.Len(), 3} { // in another order
		for c := range j.Choices(at, thorough) {
			if got := j.State(at, c).Hash(); got != hashes[fmt.Sprint(at, c)] {
				t.Fatalf("%v at %d differs the second time", c, at)
			}
		}
	}
	if len(hashes) < 1000 {
		t.Fatalf("only %d choices", len(hashes))
	}
}

// TestHashCountsStates: distinct hashes are distinct images and the other way round.
func TestHashCountsStates(t *testing.T) {
	f := memfs.New()
	newWorkload(3).run(t, f, 25)
	j := f.Journal()
	byHash := map[uint64]string{}
	byText := map[string]uint64{}
	for at := range j.Len() + 1 {
		for c := range j.Choices(at, memfs.Plan{Random: 20}) {
			image := j.State(at, c)
			text, hash := show(t, image), image.Hash()
			if old, ok := byHash[hash]; ok && old != text {
				t.Fatalf("one hash for %q and %q", old, text)
			}
			if old, ok := byText[text]; ok && old != hash {
				t.Fatalf("two hashes for %q", text)
			}
			byHash[hash], byText[text] = text, hash
		}
	}
}

// TestJournalOwnsItsBytes: a caller may reuse its buffer as soon as WriteAt returned.
func TestJournalOwnsItsBytes(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "")
	buf := []byte("abc")
	_, err := h.WriteAt(buf, 0)
	check(t, err)
	copy(buf, "xyz")
	if got := show(t, f.Crash(memfs.Everything())); got != "a=abc" {
		t.Fatal(got)
	}
}

// TestStateLeavesItsPointAlone: building one image changes neither the directories
// nor the bytes that the next one is built from.
func TestStateLeavesItsPointAlone(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "old")
	write(t, h, "new", 0)
	check(t, f.Rename("a", "b"))
	j := f.Journal()
	for range 2 {
		for want, c := range map[string]memfs.Choice{"a=old": memfs.SyncedOnly(), "b=new": memfs.Everything()} {
			if got := show(t, j.State(j.Len(), c)); got != want {
				t.Fatalf("%v leaves %q, want %q", c, got, want)
			}
		}
	}
}

// TestNestedCrash: an image is a disk like any other: recovery on it can crash too.
func TestNestedCrash(t *testing.T) {
	f := memfs.New()
	h := durable(t, f, "a", "one")
	write(t, h, "two", 3)
	image := f.Crash(memfs.TornPrefix(len(f.Journal().Pending(f.Journal().Len()))-1, 1))
	only(t, image, "a=onet") // all of it durable now
	r, err := image.OpenReadWrite("a")
	check(t, err)
	write(t, r, "X", 0)
	got := states(t, image)
	if !got["a=Xnet"] || !got["a=onet"] {
		t.Fatal(got)
	}
	for state := range got {
		if len(state) != 6 || !strings.HasSuffix(state, "net") {
			t.Fatal(state)
		}
	}
	second := image.Crash(memfs.SyncedOnly())
	create(t, second, "b", "")
	only(t, second, "a=onet", "a=onet b=")
	if show(t, f) != "a=onetwo" {
		t.Fatal("the first file system changed")
	}
}

func TestImageHasNoLocksOrCapacity(t *testing.T) {
	f := memfs.New()
	f.SetCapacity(4096)
	_, err := f.Lock("LOCK", false)
	check(t, err)
	image := f.Crash(memfs.Everything())
	if _, err := image.Lock("LOCK", false); err != nil {
		t.Fatal(err)
	}
	create(t, image, "a", strings.Repeat("x", 10000))
	var _ vfs.FS = image
}
