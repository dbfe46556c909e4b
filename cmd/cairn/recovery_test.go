package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// uncleanStore is a store of "a" and "c" whose process was killed.
func uncleanStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	holder := startHolder(t, dir)
	holder.Kill()
	holder.Wait()
	return dir
}

// tornStore is one whose last commit, "c", has not reached the disk as a whole.
func tornStore(t *testing.T) string {
	t.Helper()
	dir := uncleanStore(t)
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	if len(logs) == 0 {
		t.Fatal("no log")
	}
	b, err := os.ReadFile(logs[0]) // the next one is empty so far
	if err != nil {
		t.Fatal(err)
	}
	flip(t, logs[0], len(bytes.TrimRight(b, "\x00"))-1)
	return dir
}

// statsOf is what the package says of a store.
func statsOf(t *testing.T, dir string) cairn.Stats {
	t.Helper()
	db := openStore(t, dir, &cairn.Options{ReadOnly: true})
	defer db.Close()
	return db.Stats()
}

// position is how messages name what a torn store has lost.
func position(t *testing.T, dir string) []string {
	t.Helper()
	r := statsOf(t, dir).Recovery
	if r.DroppedBytes == 0 {
		t.Fatal("nothing was dropped")
	}
	return []string{fmt.Sprintf("%d bytes of the log", r.DroppedBytes), fmt.Sprintf("offset %d of segment %d", uint32(r.DroppedFrom), r.DroppedFrom>>32),
		"behind the last whole commit", dir}
}

// warns wants code 0 and one line on standard error that has these parts.
func (r result) warns(t *testing.T, parts ...string) {
	t.Helper()
	if r.code != 0 || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "warning") || strings.Contains(r.out, "warning") {
		t.Errorf("%+v", r)
	}
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			t.Errorf("stderr %q lacks %q", r.err, p)
		}
	}
}

func TestDroppedTailIsWarnedOf(t *testing.T) {
	dir := tornStore(t)
	parts := position(t, dir)
	for _, args := range readers(dir) {
		cli(t, args...).warns(t, append(parts, "cairn "+args[0]+": warning: ")...)
	}
	if r := cli(t, "get", dir, "a"); r.out != "new" {
		t.Errorf("%+v", r)
	}
	cli(t, "get", dir, "c").fails(t, exitNotFound, "cairn get: warning: ", "not found")
	cli(t, "put", dir, "d", "3").warns(t, append(parts, "cairn put: warning: ")...) // and the tail is gone
	cli(t, "put", dir, "d", "3").ok(t, "")
	cli(t, "scan", "--keys", dir).ok(t, "a\nd\n")

	dir = tornStore(t)
	parts = position(t, dir)
	cli(t, "delete", dir, "a").warns(t, append(parts, "cairn delete: warning: ")...)
	cli(t, "verify", dir) // clean now
	if r := cli(t, "verify", dir); r.code != 0 || r.err != "" {
		t.Errorf("%+v", r)
	}
}

func TestDroppedTailIsWarnedOfInJSON(t *testing.T) {
	dir := tornStore(t)
	s := statsOf(t, dir).Recovery
	for _, args := range append(readers(dir), []string{"put", dir, "d", "3"}) {
		r := cli(t, append(args, "--json")...)
		r.warns(t, filepath.Base(dir), "behind the last whole commit")
		w := parse[map[string]map[string]any](t, r.err)["warning"]
		if w["code"] != "dropped_tail" || w["command"] != "cairn "+args[0] || w["dropped_bytes"] != float64(s.DroppedBytes) ||
			w["dropped_segment"] != float64(s.DroppedFrom>>32) || w["dropped_offset"] != float64(uint32(s.DroppedFrom)) {
			t.Errorf("%s", r.err)
		}
	}
}

// verify says what it has not checked; that is no failure.
func TestVerifyDroppedTail(t *testing.T) {
	dir := tornStore(t)
	r := cli(t, "verify", dir)
	r.warns(t)
	if strings.Contains(r.out, "every checksum") || !strings.HasPrefix(r.out, "ok: 0 tables") || !strings.Contains(r.out, "of log replayed") {
		t.Errorf("stdout %q", r.out)
	}
	_, line, _ := strings.Cut(r.out, "\n")
	for _, p := range append(position(t, dir)[:3], "not checked, left out: ") {
		if !strings.Contains(line, p) || strings.Count(line, "\n") != 1 {
			t.Errorf("second line %q lacks %q", line, p)
		}
	}
	s := statsOf(t, dir)
	var d struct {
		OK       bool  `json:"ok"`
		LogBytes int64 `json:"log_bytes"`
		Recovery recoveryDocument
	}
	decode(t, cli(t, "verify", "--json", dir).out, &d)
	want := recoveryDocument{Needed: true, DroppedBytes: s.Recovery.DroppedBytes, DroppedSegment: s.Recovery.DroppedFrom >> 32,
		DroppedOffset: uint64(uint32(s.Recovery.DroppedFrom)), Seconds: d.Recovery.Seconds}
	if !d.OK || d.LogBytes != s.LogBytes || d.Recovery != want {
		t.Errorf("%+v, want %+v and %d bytes of log", d, want, s.LogBytes)
	}
}

// Of a log that ends with a whole commit everything is checked.
func TestVerifyReplayedLog(t *testing.T) {
	dir := uncleanStore(t)
	s := statsOf(t, dir)
	want := "ok: 0 tables, 0 B, 0 rows, and " + size(s.LogBytes) + " of log replayed, every checksum and order checked in "
	if r := cli(t, "verify", dir); r.code != 0 || r.err != "" || !strings.HasPrefix(r.out, want) || strings.Count(r.out, "\n") != 1 {
		t.Errorf("%+v, want %q", r, want)
	}
	var d struct {
		LogBytes *int64 `json:"log_bytes"`
		Recovery recoveryDocument
	}
	decode(t, cli(t, "verify", "--json", dir).out, &d)
	if d.LogBytes == nil || *d.LogBytes != s.LogBytes || !d.Recovery.Needed || d.Recovery.DroppedBytes != 0 {
		t.Errorf("%+v", d)
	}
}

func TestStatsOfUncleanStore(t *testing.T) {
	for _, dir := range []string{uncleanStore(t), tornStore(t)} {
		r := cli(t, "stats", dir)
		log := size(statsOf(t, dir).LogBytes)
		for _, p := range []string{"the store was not closed: " + log + " of log replayed in ", "  of it log                    " + log + "\n"} {
			if r.code != 0 || !strings.Contains(r.out, p) {
				t.Errorf("%+v lacks %q", r, p)
			}
		}
		if torn := r.err != ""; torn != strings.Contains(r.out, "left out: ") {
			t.Errorf("%+v", r)
		}
	}
}

// What an edit of the manifest that is not whole leaves has no place in the log.
func TestTornManifest(t *testing.T) {
	dir := uncleanStore(t)
	names, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	name := names[len(names)-1]
	manifest, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	end := (len(bytes.TrimRight(manifest, "\x00")) + 7) &^ 7 // frames begin at multiples of 8, zeros fill the file
	if err := os.WriteFile(name, append(manifest[:end], "torn torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	cli(t, "get", dir, "a").warns(t, "left out: 9 bytes at the end of the manifest")
	cli(t, "get", "--json", dir, "a").warns(t, `"dropped_bytes":9}`)
}

// A recovery whose process did not close the store is told of by the next.
func TestDroppedTailIsNotForgotten(t *testing.T) {
	dir, again := tornStore(t), t.TempDir()
	parts := position(t, dir)[:3]
	openStore(t, dir, nil)
	for name, b := range contents(t, dir) {
		if err := os.WriteFile(filepath.Join(again, name), []byte(b), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cli(t, "get", again, "a").warns(t, parts...)
	if r := cli(t, "stats", again); strings.Contains(r.out, "none was needed") || !strings.Contains(r.out, "left out: ") {
		t.Errorf("%+v", r)
	}
}

func TestRecoveryText(t *testing.T) {
	for _, c := range []struct {
		stats cairn.RecoveryStats
		log   int64
		want  string
	}{
		{cairn.RecoveryStats{}, 0, "none was needed"},
		{cairn.RecoveryStats{Duration: time.Millisecond}, 3 << 20, "the store was not closed: 3.0 MiB of log replayed in 1ms"},
		{cairn.RecoveryStats{Duration: time.Second, DroppedBytes: 1234, DroppedFrom: 7<<32 | 99}, 512,
			"the store was not closed: 512 B of log replayed in 1s; left out: 1,234 bytes of the log, from offset 99 of segment 7 (000007.log) on: everything behind the last whole commit"},
		{cairn.RecoveryStats{DroppedBytes: 8, DroppedFrom: 7<<32 | 99}, 0,
			"the store was not closed; left out: 8 bytes of the log, from offset 99 of segment 7 (000007.log) on: everything behind the last whole commit"},
	} {
		r := newRecoveryDocument(c.stats)
		if got := r.text(c.log); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.stats, got, c.want)
		}
	}
}
