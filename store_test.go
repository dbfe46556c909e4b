package cairn_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect fails unless err matches want.
func expect(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// openAt opens the store in dir and closes it, if the test has not, at the end.
func openAt(t testing.TB, dir string, opts *cairn.Options) *cairn.DB {
	t.Helper()
	db, err := cairn.Open(dir, opts)
	check(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// openNew opens an empty store in memory. Its file system records no journal.
func openNew(t testing.TB, opts *cairn.Options) *cairn.DB {
	t.Helper()
	return openAt(t, "/db", inMemory(opts))
}

// inMemory returns opts with a file system in memory, if they name none.
func inMemory(opts *cairn.Options) *cairn.Options {
	if opts == nil {
		opts = &cairn.Options{}
	}
	if opts.FS == nil {
		m := memfs.New()
		m.StopJournal()
		opts.FS = m
	}
	return opts
}

func b(s string) []byte { return []byte(s) }

func put(t testing.TB, db *cairn.DB, key, value string) {
	t.Helper()
	check(t, db.Put(b(key), b(value)))
}

// wantValue checks what Get returns; "" for value means that there is none.
func wantValue(t testing.TB, db *cairn.DB, key, value string) {
	t.Helper()
	v, err := db.Get(b(key))
	if value == "" {
		expect(t, err, cairn.ErrNotFound)
		return
	}
	if err != nil || string(v) != value {
		t.Fatalf("get %q: %q, %v; want %q", key, v, err, value)
	}
}

// contents returns every file under dir with its bytes.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			files[path] = "(directory)"
			return nil
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}

// unchanged fails if the files under dir are not what they were.
func unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := contents(t, dir)
	for name, data := range after {
		if old, ok := before[name]; !ok {
			t.Errorf("%s has appeared", name)
		} else if old != data {
			t.Errorf("%s has changed", name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("%s is gone", name)
		}
	}
}

// count returns the number in an environment variable, or def: make long raises it.
func count(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// large skips a test that is about sizes where -short asks for less: -race makes it
// ten times as long and finds nothing more in it.
func large(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("large; make test runs it")
	}
}
