package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// readers are the command lines of the verbs that only read.
func readers(dir string) [][]string {
	return [][]string{{"get", dir, "a"}, {"scan", dir}, {"stats", dir}, {"verify", dir}}
}

func TestNoStore(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{filepath.Join(empty, "none"), empty} {
		for _, args := range append(readers(dir), []string{"delete", dir, "a"}, []string{"put", dir, "a", "b"}) {
			cli(t, args...).fails(t, exitEnvironment, "cairn "+args[0]+": there is no store in "+dir)
		}
	}
	if got := contents(t, empty); len(got) != 0 {
		t.Errorf("files appeared: %v", got)
	}
	f := failureOf(t, cli(t, "get", "--json", empty, "a"))
	if f.Code != "environment" || f.Exit != exitEnvironment {
		t.Errorf("%+v", f)
	}
}

func TestStoreIsAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range append(readers(name), []string{"delete", name, "a"}, []string{"put", name, "a", "b"}, []string{"put", "--create", name, "a", "b"}) {
		cli(t, args...).fails(t, exitEnvironment, "cairn "+args[0]+": "+name+": not a directory; a store is a directory\n")
	}
	below := filepath.Join(name, "a", "b")
	for _, args := range append(readers(below), []string{"put", "--create", below, "a", "b"}) {
		cli(t, args...).fails(t, exitEnvironment, below+": "+name+" is not a directory; a store is a directory\n")
	}
}

// What leads through a link and up again is one directory for all that is done: link/../store was looked
// at where the system finds it, and ./store was opened.
func TestDotDotBehindALink(t *testing.T) {
	dir := t.TempDir()
	here, far := filepath.Join(dir, "here"), filepath.Join(dir, "far", "store")
	for _, d := range []string{here, filepath.Join(dir, "far", "real")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join("..", "far", "real"), filepath.Join(here, "link")); err != nil {
		t.Skip("NOT TESTED: no link can be made here: ", err)
	}
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: the system takes link/../store for ./store")
	}
	t.Chdir(here)
	const name = "link/../store"
	own := write(t, map[string]string{"letter.txt": "", "000007.sst": "", "000009.log": ""})
	if err := os.Rename(own, "store"); err != nil {
		t.Fatal(err)
	}
	cli(t, "put", name, "a", "1").fails(t, exitEnvironment, "there is no store in "+name)
	cli(t, "put", "--create", name, "a", "1").ok(t, "")
	cli(t, "put", name, "b", "2").ok(t, "")
	cli(t, "scan", name).ok(t, "a\t1\nb\t2\n")
	if len(contents(t, "store")) != 3 {
		t.Errorf("files appeared in ./store, or have gone: %v", contents(t, "store"))
	}
	os.RemoveAll("store")
	cli(t, "put", "--create", "store", "own", "1").ok(t, "")
	cli(t, "get", name, "a").ok(t, "1")
	if d := parse[statsDocument](t, cli(t, "stats", "--json", name).out); d.Store != resolved(t, far) {
		t.Errorf("stats says it is in %s", d.Store)
	}
	if r := cli(t, "verify", name); r.code != 0 {
		t.Errorf("verify: %+v", r)
	}
	cli(t, "delete", name, "--all").ok(t, "")
	if got := keysOf(t, far) + keysOf(t, "store"); got != "own" {
		t.Errorf("keys %q are left", got)
	}
	flip(t, table1(t, "store"), 60)
	if r := cli(t, "verify", name); r.code != 0 {
		t.Errorf("verify: %+v", r)
	}
	half := write(t, map[string]string{"letter.txt": ""})
	if err := os.Rename(half, filepath.Join(dir, "far", "other")); err != nil {
		t.Fatal(err)
	}
	cli(t, "put", "--create", "link/../other", "a", "1").fails(t, exitEnvironment, "letter.txt")
}

// resolved is name without links, as messages of the engine have it.
func resolved(t *testing.T, name string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// readBesideWriters reports whether the store in dir can be read while somebody has it open for writing.
func readBesideWriters(t *testing.T, dir string) bool {
	t.Helper()
	w, ok := vfs.OS().(vfs.Watcher)
	if !ok {
		return false
	}
	watch, err := w.Watch(filepath.Join(dir, "LOCK"))
	if errors.Is(err, errors.ErrUnsupported) {
		t.Logf("NOT TESTED: reading beside a writer: %v", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	watch.Close()
	return true
}

// While a process has the store open for writing, nobody else writes; others read what it has written.
func TestLockedByWriter(t *testing.T) {
	dir := newStore(t, "a", "1")
	holder := startHolder(t, dir)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(holder.Pid)
	refused := [][]string{{"delete", dir, "a"}, {"put", dir, "a", "b"}, {"verify", dir}}
	if !readBesideWriters(t, dir) {
		refused = append(refused, readers(dir)...)
	} else {
		for _, args := range readers(dir)[:3] {
			if r := cli(t, args...); r.code != 0 {
				t.Errorf("%v beside a writer: %+v", args, r)
			}
		}
		cli(t, "get", dir, "a").ok(t, "new")
	}
	for _, args := range refused {
		cli(t, args...).fails(t, exitLocked, "process "+pid, "host "+host, dir)
	}
	f := failureOf(t, cli(t, "delete", "--json", dir, "a"))
	if f.Code != "locked" || f.Exit != exitLocked || f.PID != holder.Pid || f.Host != host || f.Since == nil || f.File == "" {
		t.Errorf("%+v", f)
	}
}

func TestLockedByReader(t *testing.T) {
	dir := newStore(t, "a", "1")
	db := openStore(t, dir, &cairn.Options{ReadOnly: true})
	cli(t, "get", dir, "a").ok(t, "1")
	r := cli(t, "put", dir, "a", "2")
	if readBesideWriters(t, dir) {
		r.ok(t, "")
		if v, err := db.Get([]byte("a")); string(v) != "2" {
			t.Errorf("a reader that was open before: %q, %v", v, err)
		}
		return
	}
	r.fails(t, exitLocked, "another process")
	if strings.Contains(r.err, "process 0") || strings.Contains(r.err, "0001-01-01") {
		t.Errorf("%s", r.err)
	}
}

func TestWait(t *testing.T) {
	dir := newStore(t, "a", "1")
	db := openStore(t, dir, nil)
	start := time.Now()
	cli(t, "put", dir, "a", "2", "--wait", "300ms").fails(t, exitLocked)
	if d := time.Since(start); d < 300*time.Millisecond {
		t.Errorf("gave up after %v", d)
	}
	time.AfterFunc(300*time.Millisecond, func() { db.Close() })
	cli(t, "put", dir, "a", "2", "--wait", "20s").ok(t, "")
	cli(t, "get", dir, "a").ok(t, "2")
}

// The store of a process that was killed is read, and not one byte of it changed.
func TestUncleanStoreIsReadAsItIs(t *testing.T) {
	dir := newStore(t, "a", "1", "b", "2")
	holder := startHolder(t, dir)
	cli(t, "put", dir, "a", "2").fails(t, exitLocked)
	holder.Kill()
	holder.Wait()
	before := contents(t, dir)
	cli(t, "get", dir, "a").ok(t, "new")
	cli(t, "scan", dir).ok(t, "a\tnew\nb\t2\nc\tnew\n")
	cli(t, "scan", "--reverse", "--keys", dir).ok(t, "c\nb\na\n")
	if r := cli(t, "verify", dir); r.code != 0 {
		t.Errorf("verify: %+v", r)
	}
	if r := cli(t, "stats", dir); r.code != 0 || !strings.Contains(r.out, "of log replayed in") {
		t.Errorf("stats: %+v", r)
	}
	if d := parse[statsDocument](t, cli(t, "stats", "--json", dir).out); !d.Recovery.Needed || d.Seq != 4 {
		t.Errorf("%+v", d)
	}
	after := contents(t, dir)
	if len(after) != len(before) {
		t.Errorf("%d files, %d before", len(after), len(before))
	}
	for name, b := range after {
		if before[name] != b {
			t.Errorf("%s has changed", name)
		}
	}
	cli(t, "put", dir, "d", "3").ok(t, "")
	cli(t, "scan", dir).ok(t, "a\tnew\nb\t2\nc\tnew\nd\t3\n")
}

// Processes that take turns find what the ones before them have written.
func TestManyProcesses(t *testing.T) {
	dir := newStore(t)
	done := make(chan result)
	const n = 20
	for i := range n {
		go func() { done <- cli(t, "put", "--wait", "20s", dir, fmt.Sprintf("k%02d", i), "v") }()
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

// A signal in the middle of a put or a delete used to end the command with code 0.
func TestASignalDuringAWriteEndsWith130WhenItIsDone(t *testing.T) {
	dir := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs bytes.Buffer
	a := &app{out: newOutput(io.Discard, false), err: &errs}
	cmd := &cobra.Command{Use: "put"}
	cmd.SetContext(ctx)
	put := func(key string) error {
		return a.verb(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return a.write(ctx, dir, false, false, func(db *cairn.DB) error {
				cancel() // as a signal does
				if a.writing.TryLock() {
					t.Error("the process could end in the middle of it")
				}
				return db.Put([]byte(key), []byte("v"))
			})
		})(cmd, nil)
	}
	err := put("k")
	if err == nil {
		t.Fatal("code 0")
	}
	a.report(cmd, err, exitCode(err))
	if exitCode(err) != exitInterrupted || !strings.Contains(errs.String(), "is done, and stays") {
		t.Errorf("code %d, %q", exitCode(err), errs.String())
	}
	cli(t, "get", dir, "k").ok(t, "v")
	if err := put("later"); exitCode(err) != exitInterrupted || errors.Is(err, errInterruptedAfter) {
		t.Errorf("a signal that came before: %v", err)
	}
	if !a.writing.TryLock() { // as who ends the process does
		t.Fatal("a store that is closed keeps the process from ending")
	}
	if err := put("later"); exitCode(err) != exitInterrupted || errors.Is(err, errInterruptedAfter) {
		t.Errorf("a process that is about to end: %v", err)
	}
	if r := cli(t, "get", dir, "later"); r.code != exitNotFound {
		t.Errorf("what came after the signal: %+v", r)
	}
}

// With --create the message used to be that --create was missing.
func TestCreateWhereNothingCanBeMadeSaysWhy(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err != nil {
		t.Skip(err)
	}
	for _, args := range [][]string{{"put", "--create", "/proc/x", "k", "v"}, {"put", "--create", "/proc/x/y", "k", "v"}} {
		r := cli(t, args...)
		if r.code != exitEnvironment || strings.Contains(r.err, "--create") || !strings.Contains(r.err, "/proc/x") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	cli(t, "put", "/proc/x", "k", "v").fails(t, exitEnvironment, "there is no store in /proc/x (put --create makes one)")
}
