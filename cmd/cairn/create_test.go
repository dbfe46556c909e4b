package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// write makes a directory with these files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Opening a store removes what looks left over from one, so none is made where
// there is anything: names prove nothing.
func TestPutCreatesNothingAmongForeignFiles(t *testing.T) {
	half := halfMade(t, "rename")
	for _, c := range []struct {
		files map[string]string
		named string
		code  int
	}{
		{map[string]string{"letter.txt": ""}, "letter.txt", exitEnvironment},
		{map[string]string{".hidden": ""}, ".hidden", exitEnvironment},
		{map[string]string{"000001.log": "10:02 started\n"}, "000001.log", exitEnvironment},
		{map[string]string{"000001.log": strings.Repeat("10:02 started\n", 10)}, "000001.log", exitCorrupt},
		{map[string]string{"000007.log": ""}, "000007.log", exitEnvironment},
		{map[string]string{"000001.log": strings.Repeat("\x00", 1<<20+1)}, "000001.log", exitEnvironment},
		{map[string]string{"000007.sst": ""}, "000007.sst", exitEnvironment},
		{map[string]string{"MANIFEST-000007": "all of it\n"}, "MANIFEST-000007", exitEnvironment},
		{map[string]string{"MANIFEST-000007": ""}, "MANIFEST-000007", exitEnvironment},
		{map[string]string{"MANIFEST-000001": "all of it\n"}, "MANIFEST-000001", exitEnvironment},
		{map[string]string{"MANIFEST-000001": strings.Repeat("\x00", 1<<20)}, "MANIFEST-000001", exitEnvironment},
		{map[string]string{"000003.tmp": ""}, "000003.tmp", exitEnvironment},
		{map[string]string{"RESERVE": ""}, "RESERVE", exitEnvironment},
		{map[string]string{"LOCK": "front door\n"}, "LOCK", exitEnvironment},
		{map[string]string{"000002.sst": "x"}, "000002.sst", exitCorrupt},
		{map[string]string{"LOCK": "", "MANIFEST-000003": half["MANIFEST-000003"], "000003.tmp": "a draft"}, "000003.tmp", exitEnvironment},
		{map[string]string{"LOCK": "", "MANIFEST-000001": half["MANIFEST-000003"]}, "MANIFEST-000001", exitEnvironment},
		{map[string]string{"LOCK": "", "000002.log": half["000001.log"]}, "000002.log", exitEnvironment},
	} {
		dir := write(t, c.files)
		cli(t, "put", "--create", dir, "k", "v").fails(t, c.code, c.named)
		after := contents(t, dir)
		if len(after) != len(c.files) {
			t.Errorf("%s: %d files, %d before", c.named, len(after), len(c.files))
		}
		for name, b := range c.files {
			if got, ok := after[name]; !ok || got != b {
				t.Errorf("%s has changed or gone", name)
			}
		}
	}
}

func TestPutCreatesNothingAmongForeignDirectories(t *testing.T) {
	dir := write(t, map[string]string{"MANIFEST-000001": ""})
	if err := os.Mkdir(filepath.Join(dir, "000001.tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	cli(t, "put", "--create", dir, "k", "v").fails(t, exitEnvironment, "000001.tmp", "empty or not there yet")
}

// failingFS fails one operation: "create" of the temporary file of CURRENT, or its
// "rename". A process killed there leaves the same files.
type failingFS struct {
	vfs.FS
	op string
}

var errKilled = errors.New("killed")

func (f failingFS) Create(name string) (vfs.File, error) {
	if f.op == "create" && strings.HasSuffix(name, ".tmp") {
		return nil, errKilled
	}
	return f.FS.Create(name)
}

// Remove fails, since nobody who was killed tidies up.
func (failingFS) Remove(string) error { return errKilled }

func (f failingFS) Rename(from, to string) error {
	if f.op == "rename" {
		return errKilled
	}
	return f.FS.Rename(from, to)
}

// halfMade is the files of a store whose creation ended at these operations, one
// attempt after the other.
func halfMade(t *testing.T, ops ...string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	for _, op := range ops {
		if _, err := cairn.Open(dir, &cairn.Options{FS: failingFS{vfs.OS(), op}}); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	files := contents(t, dir)
	files["LOCK"] = fmt.Sprintf("%d host %s\n", os.Getpid(), time.Now().Format(time.RFC3339)) // of a process that was killed
	if _, ok := files[fmt.Sprintf("MANIFEST-%06d", 3*len(ops))]; !ok {
		t.Fatalf("%v left %d files", ops, len(files))
	}
	return files
}

func TestPutCreatesAfterAnInterruptedCreation(t *testing.T) {
	for _, ops := range [][]string{{"create"}, {"rename"}, {"create", "rename"}, {"rename", "create", "rename"}} {
		files := halfMade(t, ops...)
		check := func(what string, files map[string]string) {
			dir := write(t, files)
			cli(t, "put", dir, "k", "v").fails(t, exitEnvironment, "no store in "+dir)
			if r := cli(t, "put", "--create", dir, "k", "v"); r.code != 0 || r.err != "" {
				t.Errorf("%v, %s: %+v", ops, what, r)
			}
			cli(t, "get", dir, "k").ok(t, "v")
		}
		check("as it is", files)
		for name, b := range files { // its bytes had not reached the disk
			for what, lost := range map[string]string{"empty": "", "zero": strings.Repeat("\x00", len(b))} {
				files[name] = lost
				check(name+" "+what, files)
			}
			files[name] = b
		}
		for name, b := range files { // nor had its name
			if strings.HasPrefix(name, "MANIFEST-") {
				delete(files, name)
				check("without "+name, files)
				files[name] = b
			}
		}
	}
	cli(t, "put", "--create", write(t, map[string]string{"LOCK": ""}), "k", "v").ok(t, "")
}

// Processes that make the same store at the same time see each other's half.
func TestPutCreateByManyProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	done := make(chan result)
	const n = 10
	for i := range n {
		go func() { done <- cli(t, "put", "--create", "--wait", "20s", dir, fmt.Sprintf("k%02d", i), "v") }()
	}
	for range n {
		if r := <-done; r.code != 0 {
			t.Errorf("%+v", r)
		}
	}
	if got := len(strings.Fields(keysOf(t, dir))); got != n {
		t.Errorf("%d keys, want %d", got, n)
	}
}
