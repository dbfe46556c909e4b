package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

func TestVerify(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "2")
	if r := cli(t, "verify", dir); r.code != 0 || !strings.HasPrefix(r.out, "ok: 1 table, ") || !strings.Contains(r.out, " 2 rows, ") || r.err != "" {
		t.Errorf("%+v", r)
	}
	d := parse[verifyDocument](t, cli(t, "verify", "--json", dir).out)
	if !d.OK || d.Tables != 1 || d.Entries != 2 || d.Bytes == 0 || d.Problems == nil || len(d.Problems) > 0 {
		t.Errorf("%+v", d)
	}
}

// One is not several.
func TestVerifyCounts(t *testing.T) {
	for want, d := range map[string]verifyDocument{
		"ok: 0 tables, 0 B, 0 rows, ":         {},
		"ok: 1 table, 233 B, 1 row, ":         {Tables: 1, Bytes: 233, Entries: 1},
		"ok: 1,000 tables, 2.0 KiB, 1,001 ro": {Tables: 1000, Bytes: 2048, Entries: 1001},
	} {
		if d.OK = true; !strings.HasPrefix(d.text(), want) {
			t.Errorf("%q, want %q", d.text(), want)
		}
	}
}

// The wait for the lock is no part of the check.
func TestVerifyAfterAWait(t *testing.T) {
	dir := newStore(t, "a", "1")
	db := openStore(t, dir, nil)
	const held = 2 * time.Second
	start := time.Now()
	time.AfterFunc(held, func() { db.Close() })
	d := parse[verifyDocument](t, cli(t, "verify", "--json", "--wait", "60s", dir).out)
	if all := time.Since(start); !d.OK || d.Seconds <= 0 || d.Seconds > (all-held/2).Seconds() {
		t.Errorf("of %s: %+v", all, d)
	}
}

// A line break in a name of the store ends no line of what is printed.
func TestLineBreakInAName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a\nok: b")
	db, err := cairn.Open(dir, nil)
	if err != nil {
		t.Skip("NOT TESTED: no such name can be made here: ", err)
	}
	if err := errors.Join(db.Put([]byte("a"), []byte("1")), db.Close()); err != nil {
		t.Fatal(err)
	}
	cli(t, "get", dir, "none").fails(t, exitNotFound, `a\nok: b`)
	flip(t, table1(t, dir), 60)
	for _, args := range [][]string{{"get", dir + "2", "a"}, {"get", dir, "none"}, {"put", dir, "b", "2"}, {"verify", dir}, {"stats", dir}} {
		r := cli(t, args...)
		if strings.Contains(r.err+r.out, "\nok: b") || !strings.Contains(r.err+r.out, `a\nok: b`) {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// table returns the path of a store's only table.
func table1(t *testing.T, dir string) string {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	if len(names) != 1 {
		t.Fatalf("tables: %v", names)
	}
	return names[0]
}

// flip changes one byte of a file.
func flip(t *testing.T, name string, at int) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0x40
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Whichever byte of a table is changed, verify finds it, and gives the whole name of the file.
func TestVerifyEveryByteOfTable(t *testing.T) {
	dir := newStore(t, "a", "1", "b", strings.Repeat("2", 50))
	name := table1(t, dir)
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	real := resolved(t, name)
	t.Chdir(filepath.Dir(dir))
	for at := range int(info.Size()) {
		flip(t, name, at)
		r := cli(t, "verify", "--json", filepath.Base(dir))
		d := parse[verifyDocument](t, r.out)
		if r.code != exitCorrupt || d.OK || len(d.Problems) != 1 || d.Problems[0].File != real {
			t.Errorf("byte %d: code %d, %+v, %s", at, r.code, d, r.err)
		} else if f := failureOf(t, r); f.Code != "corrupt" || f.Message != "1 problem found" {
			t.Errorf("byte %d: %+v", at, f)
		}
		flip(t, name, at)
	}
}

func TestVerifyPrintsProblems(t *testing.T) {
	dir := largeStore(t, 5_000)
	name := table1(t, dir)
	flip(t, name, 5_000)
	r := cli(t, "verify", dir)
	if r.code != exitCorrupt || !strings.Contains(r.out, "corruption in "+resolved(t, name)+" at offset ") || strings.Contains(r.out, "ok:") {
		t.Errorf("%+v", r)
	}
	if r.err != "cairn verify: 1 problem found\n" {
		t.Errorf("stderr %q", r.err)
	}
}

// Every verb that meets damage ends with the code for it and says where it is.
func TestCorruptStore(t *testing.T) {
	dir := newStore(t, "a", strings.Repeat("1", 3000))
	name := table1(t, dir)
	flip(t, name, 60)
	cli(t, "get", dir, "a").fails(t, exitCorrupt, "corruption in ", filepath.Base(name), "at offset ")
	r := cli(t, "get", "--json", dir, "a")
	if f := failureOf(t, r); f.Code != "corrupt" || f.Exit != exitCorrupt || f.Offset == nil || !strings.Contains(f.File, filepath.Base(name)) {
		t.Errorf("%+v", f)
	}
	cli(t, "scan", dir).fails(t, exitCorrupt, filepath.Base(name))
	cli(t, "scan", "--reverse", "--json", dir).fails(t, exitCorrupt, filepath.Base(name))
}

func TestDamagedOtherwise(t *testing.T) {
	for what, damage := range map[string]func(dir string){
		"CURRENT": func(dir string) { flip(t, filepath.Join(dir, "CURRENT"), 30) },
		"missing": func(dir string) { os.Remove(filepath.Join(dir, "CURRENT")) },
		".sst":    func(dir string) { os.Remove(table1(t, dir)) },
	} {
		dir := newStore(t, "a", "1")
		damage(dir)
		before := contents(t, dir)
		cli(t, "get", dir, "a").fails(t, exitCorrupt, what)
		cli(t, "put", dir, "a", "b").fails(t, exitCorrupt, what)
		cli(t, "put", "--create", dir, "a", "b").fails(t, exitCorrupt, what)
		r := cli(t, "verify", "--json", dir)
		if d := parse[verifyDocument](t, r.out); r.code != exitCorrupt || d.OK || len(d.Problems) != 1 {
			t.Errorf("%s: code %d, %+v", what, r.code, d)
		}
		for name, b := range contents(t, dir) {
			if before[name] != b {
				t.Errorf("%s: %s has changed", what, name)
			}
		}
	}
}
