package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// sample makes a closed store with tables on several levels and returns what it
// holds.
func sample(t testing.TB, dir string) map[string]string {
	t.Helper()
	db, err := cairn.Open(dir, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
	check(t, err)
	want := map[string]string{}
	for i := range 400 {
		k, v := fmt.Sprintf("key%05d", i*7919%400), fmt.Sprintf("value %d %0*d", i, i%150, 0)
		check(t, db.Put(b(k), b(v)))
		want[k] = v
		if i == 200 {
			check(t, db.Compact(t.Context(), cairn.Range{}))
		}
	}
	check(t, db.Update(func(tx *cairn.Tx) error {
		return tx.DeleteRange(cairn.Range{Low: b("key00100"), High: b("key00110")})
	}))
	for i := 100; i < 110; i++ {
		delete(want, fmt.Sprintf("key%05d", i))
	}
	check(t, db.Close())
	return want
}

// eachFile calls f for every file of the store in dir but the lock file, and puts
// the file back afterwards.
func eachFile(t testing.TB, dir string, f func(name, data string)) {
	t.Helper()
	for name, data := range contents(t, dir) {
		if data != "(directory)" && filepath.Base(name) != "LOCK" {
			f(name, data)
			check(t, os.WriteFile(name, b(data), 0o600))
		}
	}
}

// judge reads a whole store: everything is right, or it is an error that names
// what is wrong. It returns how often something was noticed.
func judge(t *testing.T, dir string, want map[string]string) (noticed int) {
	t.Helper()
	typed := func(err error) {
		t.Helper()
		var c *cairn.CorruptionError
		if !errors.As(err, &c) && !errors.Is(err, cairn.ErrFormatTooNew) || errors.As(err, &c) && (!strings.HasPrefix(c.File, dir) || c.What == "") {
			t.Fatalf("untyped error: %v", err)
		}
		noticed++
	}
	db, err := cairn.Open(dir, &cairn.Options{ReadOnly: true, Memory: 1 << 20})
	if err != nil {
		typed(err)
		return noticed
	}
	defer db.Close()
	if db.Stats().Recovery != (cairn.RecoveryStats{}) {
		noticed++ // the seal is damaged: taken for an unclean end, and said so
	}
	if _, err := db.Verify(t.Context()); err != nil {
		typed(err)
	}
	for k, v := range want {
		got, err := db.Get(b(k))
		if err != nil {
			typed(err)
		} else if string(got) != v {
			t.Fatalf("%s is %q, want %q", k, got, v)
		}
	}
	n := 0
	err = db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			if want[string(k)] != string(v) {
				t.Fatalf("scan: %s is %q, want %q", k, v, want[string(k)])
			}
			n++
		}
		return nil
	})
	if err != nil {
		typed(err)
	} else if n != len(want) {
		t.Fatalf("scan: %d rows of %d, and no error", n, len(want))
	}
	return noticed
}

// TestDamage flips bytes in and truncates every file of a closed store. (The
// exhaustive run, over every bit, is internal/crashtest's.)
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	want := sample(t, dir)
	if n := judge(t, dir, want); n != 0 {
		t.Fatal("the sample itself is damaged")
	}
	eachFile(t, dir, func(name, data string) {
		damage := func(what string, changed []byte) {
			check(t, os.WriteFile(name, changed, 0o600))
			if judge(t, dir, want) == 0 {
				t.Errorf("%s of %s was not noticed", what, filepath.Base(name))
			}
		}
		step := max(1, len(data)/60)
		for off := 0; off < len(data); off += step {
			changed := b(data)
			changed[off] ^= 1 << (off % 8)
			damage(fmt.Sprintf("flip at %d", off), changed)
		}
		for _, n := range []int{0, 1, len(data) / 2, len(data) - 1} {
			damage(fmt.Sprintf("truncation to %d", n), b(data)[:n])
		}
		damage("a foreign file in place", b("#!/bin/sh\necho hello\n"))
		check(t, os.Remove(name))
		if openError(t, dir, &cairn.Options{ReadOnly: true}) == nil {
			t.Errorf("%s is missing, unnoticed", filepath.Base(name))
		}
	})
	if n := judge(t, dir, want); n != 0 {
		t.Error("the sample is damaged at the end")
	}
}

// TestCloseDespiteDamage: a damaged table keeps Close from merging it, which it says, but
// not from making tables of what was written since.
func TestCloseDespiteDamage(t *testing.T) {
	dir := t.TempDir()
	db, err := cairn.Open(dir, nil)
	check(t, err)
	for i := range 400 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), fmt.Appendf(nil, "value %0*d", i, i)))
	}
	check(t, db.Close())
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	data, err := os.ReadFile(tables[0])
	check(t, err)
	data[100] ^= 1 // of the keys of the first block
	check(t, os.WriteFile(tables[0], data, 0o600))

	db, err = cairn.Open(dir, &cairn.Options{Durability: cairn.Relaxed})
	check(t, err)
	for i := range 400 {
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), fmt.Appendf(nil, "again %0*d", i, i)))
	}
	if err := db.Close(); !errors.Is(err, cairn.ErrCorrupt) {
		t.Errorf("Close: %v", err)
	}
	if logs, _ := filepath.Glob(filepath.Join(dir, "*.log")); len(logs) > 0 {
		t.Errorf("what was written is still in %v", logs)
	}
	db, err = cairn.Open(dir, &cairn.Options{ReadOnly: true})
	check(t, err)
	defer db.Close()
	for i := range 400 {
		if got, err := db.Get(fmt.Appendf(nil, "key%05d", i)); err != nil || string(got) != fmt.Sprintf("again %0*d", i, i) {
			t.Fatalf("key %d is %q, %v", i, got, err)
		}
	}
}

// TestDamageChangesNothing: a store that cannot be opened for writing is left as
// it is, for somebody to repair.
func TestDamageChangesNothing(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir)
	eachFile(t, dir, func(name, data string) {
		changed := b(data)
		changed[min(20, len(changed)-2)] ^= 0x40
		check(t, os.WriteFile(name, changed, 0o600))
		before := contents(t, dir)
		if err := openError(t, dir, nil); !errors.Is(err, cairn.ErrCorrupt) {
			t.Fatalf("%s: %v", filepath.Base(name), err)
		}
		unchanged(t, dir, before)
	})
}

// TestFormatTooNew: files of a later version are refused, and left alone.
func TestFormatTooNew(t *testing.T) {
	open := openUnclean(t, cairn.Options{Durability: cairn.Relaxed})
	for i := range 100 {
		put(t, open.DB, fmt.Sprint(i), "v")
	}
	check(t, open.Compact(t.Context(), cairn.Range{}))
	put(t, open.DB, "in the log", "v")
	dir := open.kill(t)
	refused := map[string]bool{}
	eachFile(t, dir, func(name, data string) {
		if len(data) < 64 || !strings.HasPrefix(data, "cairn") || filepath.Base(name) == "CURRENT" {
			return
		}
		changed := b(data)
		version := uint32(2)
		if data[5:8] == "LOG" {
			version = 3
		}
		binary.LittleEndian.PutUint32(changed[8:], version)
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(crc32.Checksum(changed[:12], castagnoli), castagnoli, changed[16:64])
		binary.LittleEndian.PutUint32(changed[12:], sum)
		check(t, os.WriteFile(name, changed, 0o644))
		before := contents(t, dir)
		for _, readOnly := range []bool{true, false} {
			err := openError(t, dir, &cairn.Options{ReadOnly: readOnly})
			if readOnly && err == nil {
				break // a file that is not in use any more
			}
			expect(t, err, cairn.ErrFormatTooNew)
			refused[data[5:8]] = true
			if !strings.Contains(err.Error(), filepath.Base(name)) {
				t.Errorf("%v does not name %s", err, name)
			}
			before[filepath.Join(dir, "LOCK")] = contents(t, dir)[filepath.Join(dir, "LOCK")]
			unchanged(t, dir, before)
		}
	})
	if !refused["LOG"] || !refused["SST"] || !refused["MAN"] {
		t.Errorf("refused %v only", refused)
	}
}

// restedTwice is a store that came to rest with some thousand keys, and was then written to again; it has so many in all.
func restedTwice(t *testing.T, m *memfs.FS, fsys vfs.FS) (db *cairn.DB, all uint64) {
	t.Helper()
	db = openAt(t, "/db", &cairn.Options{FS: fsys, Memory: 256 << 20})
	value, random := make([]byte, 4000), rand.NewChaCha8([32]byte{})
	put := func(batches int) {
		for range batches {
			batch := cairn.NewBatch()
			for range 100 {
				random.Read(value)
				batch.Put(fmt.Appendf(nil, "%06d", all), value)
				all++
			}
			check(t, db.Write(batch))
		}
	}
	put(90) // more than Close would merge with what comes behind it
	for start := time.Now(); db.Stats().CompactionDebt > 0 || strings.Contains(strings.Join(m.Files(), " "), ".log"); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("the store does not come to rest")
		}
	}
	put(1)
	return db, all
}

// TestManifestCutWhereTheStoreRested: a store that came to rest, was written to again and closed had in its manifest an edit
// that names no log, and no table that would be missing; where the manifest was cut behind that, all that came later was
// removed without a word.
func TestManifestCutWhereTheStoreRested(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db, all := restedTwice(t, m, m)
	check(t, db.Close())
	manifests := slices.DeleteFunc(m.Files(), func(name string) bool { return !strings.Contains(name, "MANIFEST") })
	if len(manifests) != 1 {
		t.Fatal(manifests)
	}
	content, err := m.ReadFile(manifests[0])
	check(t, err)
	seen := 0
	for cut := 64; cut < len(content); cut += 8 {
		damaged := m.Clone()
		check(t, damaged.WriteFile(manifests[0], append(bytes.Clone(content[:cut]), make([]byte, len(content)-cut)...)))
		db, err := cairn.Open("/db", &cairn.Options{FS: damaged})
		if err != nil {
			expect(t, err, cairn.ErrCorrupt)
			seen++
			continue
		}
		if n := db.Stats().Entries; n != all {
			t.Errorf("cut at %d of %d: %d of %d keys are there", cut, len(content), n, all)
		}
		check(t, db.Close())
	}
	if seen == 0 {
		t.Error("no damage was seen")
	}
}

// TestCloseWithoutANewManifest: where the one that should end a store cannot be made the old one does.
func TestCloseWithoutANewManifest(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	disk := faultfs.New(m)
	db, all := restedTwice(t, m, disk)
	none := disk.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "MANIFEST-*", Sticky: true, Do: faultfs.Fail(syscall.EMFILE)})
	check(t, db.Close())
	if none.Fired() != 1 {
		t.Errorf("%d manifests were to be made", none.Fired())
	}
	db = openAt(t, "/db", &cairn.Options{FS: m})
	if s := db.Stats(); s.Entries != all || s.Recovery != (cairn.RecoveryStats{}) {
		t.Errorf("%d of %d keys are there, %+v", s.Entries, all, s.Recovery)
	}
}
