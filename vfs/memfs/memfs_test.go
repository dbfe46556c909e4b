package memfs_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
	"github.com/cairndb/cairn/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	vfstest.Run(t, func(t testing.TB) (vfs.FS, string) {
		f := memfs.New()
		check(t, f.MkdirAll("/store"))
		return f, "/store"
	})
}

// TestConformanceOfImage: what State and Clone return is a whole file system.
func TestConformanceOfImage(t *testing.T) {
	vfstest.Run(t, func(t testing.TB) (vfs.FS, string) {
		f := memfs.New()
		check(t, f.MkdirAll("/store"))
		return f.Crash(memfs.Everything()).Clone(), "/store"
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, f *memfs.FS, name, text string) vfs.File {
	t.Helper()
	h, err := f.Create(name)
	check(t, err)
	write(t, h, text, 0)
	return h
}

func write(t testing.TB, h vfs.File, text string, off int64) {
	t.Helper()
	_, err := h.WriteAt([]byte(text), off)
	check(t, err)
}

// durable makes a file whose bytes and name are durable.
func durable(t testing.TB, f *memfs.FS, name, text string) vfs.File {
	t.Helper()
	h := create(t, f, name, text)
	check(t, h.Sync())
	check(t, f.SyncDir("/"))
	return h
}

// show renders an image: "name=bytes" of every file, missing files left out.
func show(t testing.TB, f *memfs.FS) string {
	t.Helper()
	var parts []string
	for _, name := range f.Files() {
		data, err := f.ReadFile(name)
		check(t, err)
		text := strings.ReplaceAll(string(data), "\x00", ".")
		parts = append(parts, strings.TrimPrefix(name, "/")+"="+text)
	}
	return strings.Join(parts, " ")
}

func TestNamesAreNormalised(t *testing.T) {
	f := memfs.New()
	check(t, f.MkdirAll("d/e"))
	create(t, f, "/d/./e/../e//a", "abc")
	if got := f.Files(); !slices.Equal(got, []string{"/d/e/a"}) {
		t.Fatal(got)
	}
	if _, err := f.Open("d/e/a/b"); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatal(err)
	}
	if f.Remove("/") == nil || f.Rename("/", "/x") == nil {
		t.Fatal("the root moved")
	}
}

func TestOutsideTools(t *testing.T) {
	f := memfs.New()
	check(t, f.WriteFile("a", []byte("abc")))
	check(t, f.Corrupt("a", 1, 0xff))
	check(t, f.FlipBit("a", 16)) // the lowest bit of the third byte
	data, err := f.ReadFile("a")
	check(t, err)
	if string(data) != "a\x9db" {
		t.Fatalf("%q", data)
	}
	check(t, f.Truncate("a", 1))
	check(t, f.Truncate("a", 3))
	if show(t, f) != "a=a.." {
		t.Fatal(show(t, f))
	}
	for _, err := range []error{f.Corrupt("a", 3, 1), f.Corrupt("a", -1, 1), f.Truncate("a", -1)} {
		if !errors.Is(err, fs.ErrInvalid) {
			t.Fatal(err)
		}
	}
	if err := f.Corrupt("none", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if got := show(t, f.Crash(memfs.SyncedOnly())); got != "a=a.." {
		t.Fatalf("what was done to the disk itself is lost: %s", got)
	}
}

// TestTamperedFileKeepsLaterWrites: a tool settles what was pending; what the store
// writes afterwards is pending again.
func TestTamperedFileKeepsLaterWrites(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", "abcdef")
	check(t, f.Corrupt("a", 0, 'a'^'X'))
	write(t, h, "Z", 5)
	if got := show(t, f.Crash(memfs.SyncedOnly())); got != "a=Xbcdef" {
		t.Fatal(got)
	}
	if got := show(t, f.Crash(memfs.Everything())); got != "a=XbcdeZ" {
		t.Fatal(got)
	}
	check(t, f.Remove("a"))
	check(t, f.WriteFile("a", []byte("new")))
	for _, c := range []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()} {
		if got := show(t, f.Crash(c)); got != "a=new" {
			t.Fatalf("%v: %s", c, got)
		}
	}
}

func TestCapacity(t *testing.T) {
	f := memfs.New()
	f.SetCapacity(3 * 4096)
	h := create(t, f, "a", strings.Repeat("x", 4096))
	check(t, h.Preallocate(4096, 4096))
	if f.Used() != 2*4096 {
		t.Fatal(f.Used())
	}
	if err := h.Preallocate(0, 5*4096); !vfs.IsNoSpace(err) {
		t.Fatalf("preallocation beyond the capacity: %v", err)
	}
	if size, _ := h.Size(); size != 2*4096 {
		t.Fatalf("a failed preallocation left %d bytes", size)
	}
	n, err := h.WriteAt(make([]byte, 3*4096), 4000)
	if n != 3*4096-4000 || !vfs.IsNoSpace(err) {
		t.Fatalf("write over the end of the disk: %d, %v", n, err)
	}
	if n, err = h.WriteAt(make([]byte, 3*4096), 0); n != 3*4096 || err != nil {
		t.Fatalf("overwriting needs no space: %d, %v", n, err)
	}
	if n, err = h.WriteAt([]byte("x"), 1<<20); n != 0 || !vfs.IsNoSpace(err) {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestCapacityComesBack(t *testing.T) {
	f := memfs.New()
	f.SetCapacity(4096)
	a := create(t, f, "a", "x")
	check(t, f.Link("a", "b"))
	b := create(t, f, "c", "")
	full := func() bool {
		n, err := b.WriteAt([]byte("y"), 0)
		if err != nil && (n != 0 || !vfs.IsNoSpace(err)) {
			t.Fatal(n, err)
		}
		return err != nil
	}
	check(t, f.Remove("a"))
	if !full() {
		t.Fatal("space came back while another name leads to it")
	}
	check(t, f.Remove("b"))
	if !full() {
		t.Fatal("space came back while the file is open")
	}
	check(t, a.Close())
	if full() {
		t.Fatal("the space of a file without name and handle is not free")
	}
	f.SetCapacity(0)
	write(t, b, strings.Repeat("x", 1<<20), 0)
	check(t, f.Truncate("c", 1))
	if f.Used() != 4096 {
		t.Fatal(f.Used())
	}
}

func TestRenameFreesTarget(t *testing.T) {
	f := memfs.New()
	check(t, create(t, f, "a", "x").Close())
	check(t, create(t, f, "b", "y").Close())
	check(t, f.Rename("a", "b"))
	if f.Used() != 4096 {
		t.Fatal(f.Used())
	}
}

// TestRenameOntoOtherNameOfItself does nothing, by POSIX: both names stay.
func TestRenameOntoOtherNameOfItself(t *testing.T) {
	f := memfs.New()
	durable(t, f, "a", "1")
	check(t, f.Link("a", "b"))
	check(t, f.SyncDir("/"))
	check(t, f.Rename("a", "b"))
	only(t, f, "a=1 b=1")
}

func TestHash(t *testing.T) {
	make := func(files ...string) uint64 {
		f := memfs.New()
		for i := 0; i < len(files); i += 2 {
			create(t, f, files[i], files[i+1])
		}
		return f.Hash()
	}
	base := make("a", "1", "b", "2")
	if make("b", "2", "a", "1") != base {
		t.Error("the order of creation changes the hash")
	}
	for _, other := range [][]string{{"a", "2", "b", "1"}, {"a", "1"}, {"a", "1", "c", "2"}, {"a", "1", "b", "2\x00"}, {}} {
		if make(other...) == base {
			t.Errorf("%q has the hash of another image", other)
		}
	}
	live := memfs.New()
	w := create(t, live, "a", "1")
	before := live.Hash()
	write(t, w, "2", 0) // in place
	if live.Hash() == before {
		t.Error("the hash does not follow a write")
	}
	f, g := memfs.New(), memfs.New()
	check(t, create(t, f, "a", "").Preallocate(0, 10000))
	create(t, g, "a", string(append([]byte{}, strings.Repeat("\x00", 10000)...)))
	if f.Hash() != g.Hash() || !f.Equal(g) {
		t.Error("preallocated zeros differ from written ones")
	}
	h := f.Hash()
	check(t, f.FlipBit("a", 12345))
	if f.Hash() == h {
		t.Error("a flipped bit does not change the hash")
	}
	check(t, f.FlipBit("a", 12345))
	if f.Hash() != h {
		t.Error("flipping back does not restore the hash")
	}
}

// TestClonesAreApart: copy-on-write must never show one side's writes to the other.
func TestClonesAreApart(t *testing.T) {
	f := memfs.New()
	h := create(t, f, "a", strings.Repeat("x", 10000))
	c := f.Clone()
	d := c.Clone()
	write(t, h, "F", 5000)
	w, err := c.OpenReadWrite("a")
	check(t, err)
	write(t, w, "C", 5000)
	write(t, w, "C", 9999)
	check(t, c.Remove("a"))
	for i, want := range []string{"F", "", "x"} {
		data, err := []*memfs.FS{f, c, d}[i].ReadFile("a")
		if want == "" {
			if err == nil {
				t.Error("the clone's removal did not happen")
			}
			continue
		}
		if string(data[5000:5001]) != want || string(data[9999]) != "x" {
			t.Errorf("image %d shows %q at 5000", i, data[5000])
		}
	}
	if c.Journal().Len() != 3 || d.Journal().Len() != 0 {
		t.Error("clones share a journal")
	}
}
