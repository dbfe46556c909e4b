package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

var errDisk = errors.New("the disk is bad")

// keyCalls are all calls that take a key.
var keyCalls = map[string]func(db *cairn.DB, key []byte) error{
	"Get":    func(db *cairn.DB, key []byte) error { _, err := db.Get(key); return err },
	"GetTo":  func(db *cairn.DB, key []byte) error { _, err := db.GetTo(key, nil); return err },
	"Has":    func(db *cairn.DB, key []byte) error { _, err := db.Has(key); return err },
	"Put":    func(db *cairn.DB, key []byte) error { return db.Put(key, b("v")) },
	"Delete": func(db *cairn.DB, key []byte) error { return db.Delete(key) },
	"Tx.Get": inTx(func(tx *cairn.Tx, key []byte) error { _, err := tx.Get(key); return err }),
	"Tx.Has": inTx(func(tx *cairn.Tx, key []byte) error { _, err := tx.Has(key); return err }),
	"Tx.Put": inTx(func(tx *cairn.Tx, key []byte) error { return tx.Put(key, b("v")) }),
	"Tx.PutIfAbsent": inTx(func(tx *cairn.Tx, key []byte) error {
		_, err := tx.PutIfAbsent(key, b("v"))
		return err
	}),
	"Tx.CompareAndSwap": inTx(func(tx *cairn.Tx, key []byte) error {
		_, err := tx.CompareAndSwap(key, b("v"), b("w"))
		return err
	}),
	"Tx.Delete": inTx(func(tx *cairn.Tx, key []byte) error { return tx.Delete(key) }),
}

func inTx(call func(tx *cairn.Tx, key []byte) error) func(db *cairn.DB, key []byte) error {
	return func(db *cairn.DB, key []byte) error {
		return db.Update(func(tx *cairn.Tx) error {
			err := call(tx, key)
			if errors.Is(err, cairn.ErrEmptyKey) || errors.Is(err, cairn.ErrKeyTooLarge) {
				if tx.Err() != nil { // a refused argument does not spoil the transaction
					return tx.Err()
				}
			}
			return err
		})
	}
}

func TestKeyLimits(t *testing.T) {
	db := openNew(t, nil)
	for name, call := range keyCalls {
		for _, c := range []struct {
			key  []byte
			want error
		}{
			{nil, cairn.ErrEmptyKey}, {[]byte{}, cairn.ErrEmptyKey},
			{make([]byte, cairn.MaxKeyBytes+1), cairn.ErrKeyTooLarge},
			{make([]byte, 2<<20), cairn.ErrKeyTooLarge},
			{[]byte{0}, nil},
			{bytes.Repeat([]byte{0xFF}, cairn.MaxKeyBytes-1), nil},
			{bytes.Repeat([]byte{0xFF}, cairn.MaxKeyBytes), nil},
		} {
			err := call(db, c.key)
			if c.want != nil {
				expect(t, err, c.want)
			} else if err != nil && !errors.Is(err, cairn.ErrNotFound) {
				t.Errorf("%s of a key of %d bytes: %v", name, len(c.key), err)
			}
		}
	}
}

// TestKeysAtTheLimit are as good as any other, wherever they are.
func TestKeysAtTheLimit(t *testing.T) {
	long := func(last byte) []byte {
		return append(bytes.Repeat(b("k"), cairn.MaxKeyBytes-1), last)
	}
	everywhere(t, func(t *testing.T, db *cairn.DB) {
		for c := byte(0); c < 20; c++ {
			check(t, db.Put(long(c), []byte{c}))
		}
		check(t, db.Update(func(tx *cairn.Tx) error {
			return tx.DeleteRange(cairn.Range{Low: long(5), High: long(9)})
		}))
	}, func(t *testing.T, db *cairn.DB) {
		check(t, db.View(func(tx *cairn.Tx) error {
			if n := len(keysOf(tx, cairn.Range{})); n != 16 {
				t.Errorf("%d keys", n)
			}
			v, err := tx.Get(long(9))
			if !bytes.Equal(v, []byte{9}) {
				t.Errorf("%v", v)
			}
			if ok, _ := tx.Has(long(8)); ok {
				t.Error("a deleted key is there")
			}
			return err
		}))
	})
}

// TestValueTooLarge: a value over the limit is refused before anything is copied.
func TestValueTooLarge(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "old")
	seq := db.Stats().Seq
	value := make([]byte, cairn.MaxValueBytes+1) // never touched, so never resident
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	expect(t, db.Put(b("a"), value), cairn.ErrValueTooLarge)
	batch := cairn.NewBatch()
	batch.Put(b("a"), value)
	expect(t, db.Write(batch), cairn.ErrValueTooLarge)
	check(t, db.Update(func(tx *cairn.Tx) error {
		expect(t, tx.Put(b("a"), value), cairn.ErrValueTooLarge)
		_, err := tx.PutIfAbsent(b("b"), value)
		expect(t, err, cairn.ErrValueTooLarge)
		_, err = tx.CompareAndSwap(b("a"), b("old"), value)
		expect(t, err, cairn.ErrValueTooLarge)
		return nil
	}))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("%d bytes allocated on the way to a refusal", n)
	}
	wantValue(t, db, "a", "old")
	wantValue(t, db, "b", "")
	if s := db.Stats().Seq; s != seq {
		t.Errorf("sequence %d, was %d", s, seq)
	}
}

// TestLargeValues: values of any size up to the limit; beyond 64 MiB on demand.
func TestLargeValues(t *testing.T) {
	sizes := []int{0, 1, 4095, 4096, 65 << 10, 1<<20 - 1, 1 << 20, 1<<20 + 1, 9 << 20, 17 << 20}
	if n := count("CAIRN_VALUE_BYTES", 0); n > 0 {
		sizes = append(sizes, n-1, n)
	}
	opts := &cairn.Options{Memory: 4 << 20, Durability: cairn.Relaxed}
	dir := t.TempDir()
	db := openAt(t, dir, opts)
	name := func(n int) []byte { return fmt.Appendf(nil, "%010d", n) }
	value := make([]byte, sizes[len(sizes)-1])
	for i := 0; i+8 <= len(value); i += 8 {
		binary.LittleEndian.PutUint64(value[i:], uint64(i)*0x9E3779B97F4A7C15)
	}
	for _, n := range sizes {
		check(t, db.Put(name(n), value[:n]))
	}
	for range 2 {
		for _, n := range sizes {
			if v, err := db.Get(name(n)); err != nil || !bytes.Equal(v, value[:n]) {
				t.Fatalf("value of %d bytes: %d bytes, %v", n, len(v), err)
			}
		}
		check(t, db.View(func(tx *cairn.Tx) error {
			i := 0
			for k, v := range tx.Scan(cairn.Range{}) {
				if n := sizes[i]; !bytes.Equal(k, name(n)) || !bytes.Equal(v, value[:n]) {
					t.Fatalf("row %q of %d bytes", k, len(v))
				}
				i++
			}
			return nil
		}))
		check(t, db.Compact(t.Context(), cairn.Range{}))
		check(t, db.Close())
		db = openAt(t, dir, opts)
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, opts := range map[string]*cairn.Options{
		"negative memory":        {Memory: -1},
		"too little memory":      {Memory: 1<<20 - 1},
		"negative sync interval": {SyncInterval: -1},
		"negative lock timeout":  {LockTimeout: -1},
		"unknown compression":    {Compression: 4},
		"unknown durability":     {Durability: 2},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		_, err := cairn.Open(dir, opts)
		if !errors.Is(err, cairn.ErrInvalidOption) || !strings.Contains(err.Error(), " ") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the directory was made", name)
		}
	}
	_, err := cairn.Open("", nil)
	expect(t, err, cairn.ErrInvalidOption)
}

func TestDirectoryIsAFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	check(t, os.WriteFile(name, b("precious"), 0o600))
	before := contents(t, dir)
	for _, readOnly := range []bool{false, true} {
		for _, path := range []string{name, filepath.Join(name, "below")} {
			db, err := cairn.Open(path, &cairn.Options{ReadOnly: readOnly})
			if err == nil {
				db.Close()
				t.Fatal("a file was opened as a store")
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not say which path", err)
			}
		}
	}
	_, err := cairn.Open(name, nil)
	expect(t, err, fs.ErrInvalid)
	unchanged(t, dir, before)
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing"), dir} {
		_, err := cairn.Open(path, &cairn.Options{ReadOnly: true})
		expect(t, err, fs.ErrNotExist)
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was made")
	}
}

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

// unclean opens a store and copies its files, all at one instant, to a directory, as
// a killed process leaves them.
type unclean struct {
	*cairn.DB
	fs *memfs.FS
}

func openUnclean(t testing.TB, opts cairn.Options) unclean {
	t.Helper()
	m := memfs.New()
	m.StopJournal()
	opts.FS = m
	return unclean{openAt(t, "/db", &opts), m}
}

func (u unclean) kill(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	disk := u.fs.Clone()
	for _, name := range disk.Files() {
		data, err := disk.ReadFile(name)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o644))
	}
	return dir
}

// judge reads a whole store: everything is right, or it is an error that names
// what is wrong. It returns how often something was noticed.
func judge(t *testing.T, dir string, want map[string]string) (noticed int) {
	t.Helper()
	typed := func(err error) {
		t.Helper()
		var c *cairn.CorruptionError
		if !errors.As(err, &c) && !errors.Is(err, cairn.ErrFormatTooNew) || errors.As(err, &c) && (c.File == "" || c.What == "") {
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
	for name, data := range contents(t, dir) {
		if filepath.Base(name) == "LOCK" || data == "(directory)" {
			continue
		}
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
		_, err := cairn.Open(dir, &cairn.Options{ReadOnly: true})
		if err == nil {
			t.Errorf("%s is missing, unnoticed", filepath.Base(name))
		}
		check(t, os.WriteFile(name, b(data), 0o600))
	}
	if n := judge(t, dir, want); n != 0 {
		t.Error("the sample is damaged at the end")
	}
}

// TestDamageChangesNothing: a store that cannot be opened for writing is left as
// it is, for somebody to repair.
func TestDamageChangesNothing(t *testing.T) {
	dir := t.TempDir()
	sample(t, dir)
	for name, data := range contents(t, dir) {
		if filepath.Base(name) == "LOCK" || data == "(directory)" {
			continue
		}
		changed := b(data)
		changed[min(20, len(changed)-2)] ^= 0x40
		check(t, os.WriteFile(name, changed, 0o600))
		before := contents(t, dir)
		db, err := cairn.Open(dir, nil)
		if err == nil {
			t.Errorf("%s: opened", filepath.Base(name))
			db.Close()
		}
		expect(t, err, cairn.ErrCorrupt)
		unchanged(t, dir, before)
		check(t, os.WriteFile(name, b(data), 0o600))
	}
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
	for name, data := range contents(t, dir) {
		if len(data) < 64 || !strings.HasPrefix(data, "cairn") || filepath.Base(name) == "CURRENT" {
			continue
		}
		changed := b(data)
		binary.LittleEndian.PutUint32(changed[8:], 2)
		castagnoli := crc32.MakeTable(crc32.Castagnoli)
		sum := crc32.Update(crc32.Checksum(changed[:12], castagnoli), castagnoli, changed[16:64])
		binary.LittleEndian.PutUint32(changed[12:], sum)
		check(t, os.WriteFile(name, changed, 0o644))
		before := contents(t, dir)
		for _, readOnly := range []bool{true, false} {
			db, err := cairn.Open(dir, &cairn.Options{ReadOnly: readOnly})
			if readOnly && err == nil {
				check(t, db.Close())
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
		check(t, os.WriteFile(name, b(data), 0o644))
	}
	if !refused["LOG"] || !refused["SST"] || !refused["MAN"] {
		t.Errorf("refused %v only", refused)
	}
}

// TestReadOnly: a read-only store of an unclean end is recovered in memory, refuses
// all writes, and changes no byte.
func TestReadOnly(t *testing.T) {
	open := openUnclean(t, cairn.Options{Durability: cairn.Relaxed, Memory: 1 << 20})
	for i := range 3000 {
		put(t, open.DB, fmt.Sprintf("key%04d", i), fmt.Sprintf("%0300d", i))
	}
	check(t, open.Delete(b("key0007")))
	check(t, open.Update(func(tx *cairn.Tx) error {
		return tx.DeleteRange(cairn.Range{Low: b("key0010"), High: b("key0020")})
	}))
	dir := open.kill(t)
	before := contents(t, dir)
	for range 2 {
		db := openAt(t, dir, &cairn.Options{ReadOnly: true})
		if s := db.Stats(); s.Recovery.Duration == 0 || s.Recovery.DroppedBytes != 0 {
			t.Errorf("recovery: %+v", s.Recovery)
		}
		second := openAt(t, dir, &cairn.Options{ReadOnly: true}) // beside another
		wantValue(t, second, "key2999", fmt.Sprintf("%0300d", 2999))
		check(t, second.Close())
		refusesWrites(t, db)
		check(t, db.View(func(tx *cairn.Tx) error {
			if n := len(keysOf(tx, cairn.Range{})); n != 3000-11 {
				t.Errorf("%d keys", n)
			}
			return nil
		}))
		wantValue(t, db, "key0007", "")
		wantValue(t, db, "key2999", fmt.Sprintf("%0300d", 2999))
		_, err := db.Verify(t.Context())
		check(t, err)
		check(t, db.Close())
		unchanged(t, dir, before)
	}
}

func refusesWrites(t *testing.T, db *cairn.DB) {
	t.Helper()
	batch := cairn.NewBatch()
	batch.Put(b("x"), nil)
	_, begin := db.Begin(true)
	for i, err := range []error{
		db.Put(b("x"), nil), db.Delete(b("x")), db.Write(batch), begin, db.Sync(),
		db.Update(func(tx *cairn.Tx) error { return nil }), db.Compact(t.Context(), cairn.Range{}),
		db.View(func(tx *cairn.Tx) error { return tx.Put(b("x"), nil) }),
	} {
		if !errors.Is(err, cairn.ErrReadOnly) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

// TestLocked: one writer, or any number of readers.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	db := openAt(t, dir, nil)
	for _, readOnly := range []bool{false, true} {
		_, err := cairn.Open(dir, &cairn.Options{ReadOnly: readOnly})
		var l *cairn.LockedError
		if !errors.As(err, &l) || !errors.Is(err, cairn.ErrLocked) || l.PID != os.Getpid() || l.Since.IsZero() || !strings.Contains(l.Path, dir) {
			t.Errorf("read-only %v: %v", readOnly, err)
		}
	}
	start := time.Now()
	_, err := cairn.Open(dir, &cairn.Options{LockTimeout: 50 * time.Millisecond})
	expect(t, err, cairn.ErrLocked)
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("gave up after %v", d)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		db.Close()
	}()
	again := openAt(t, dir, &cairn.Options{LockTimeout: 10 * time.Second})
	put(t, again, "a", "1")
	check(t, again.Close())
	reader := openAt(t, dir, &cairn.Options{ReadOnly: true})
	_, err = cairn.Open(dir, nil)
	expect(t, err, cairn.ErrLocked)
	wantValue(t, reader, "a", "1")
}

// TestFullDisk: commits fail with ErrNoSpace and leave nothing, reading goes on, and
// everything works again once there is space.
func TestFullDisk(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 4 << 20})
	random := rand.NewChaCha8([32]byte{1})
	noise := func() []byte { // does not compress
		v := make([]byte, 10_000)
		random.Read(v)
		return v
	}
	want := map[string]string{}
	fill := func() error {
		for i := range 1000 {
			k, v := fmt.Sprintf("key%05d", i), string(noise())
			if err := db.Put(b(k), b(v)); err != nil {
				return err
			}
			want[k] = v
		}
		return nil
	}
	for round := range 3 {
		m.SetCapacity(m.Used() + 3<<20)
		err := fill()
		expect(t, err, cairn.ErrNoSpace)
		for range 3 { // large ones do not get in either, and leave nothing behind
			big := cairn.NewBatch()
			for i := range 800 {
				big.Put(fmt.Appendf(nil, "big%05d", i), noise())
			}
			expect(t, db.Write(big), cairn.ErrNoSpace)
		}
		for k, v := range want {
			wantValue(t, db, k, v)
		}
		wantValue(t, db, "big00000", "")
		m.SetCapacity(0)
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if err = db.Put(b("healed"), fmt.Append(nil, round)); err == nil {
				break
			}
			expect(t, err, cairn.ErrNoSpace)
			if time.Now().After(deadline) {
				t.Fatal("there is space, but no commit gets through:", err)
			}
		}
	}
	check(t, db.Close())
	db = openAt(t, "/db", &cairn.Options{FS: m})
	if d := db.Stats().Recovery.DroppedBytes; d != 0 {
		t.Errorf("%d bytes dropped", d)
	}
	want["healed"] = "2"
	for k, v := range want {
		wantValue(t, db, k, v)
	}
	_, err := db.Verify(t.Context())
	check(t, err)
}

// TestFullDiskFromTheStart: not even a store can be made, and nothing is left of it.
func TestFullDiskFromTheStart(t *testing.T) {
	for _, capacity := range []int64{1, 4 << 10, 8 << 10, 12 << 10, 100 << 10} {
		m := memfs.New()
		m.SetCapacity(capacity)
		db, err := cairn.Open("/db", &cairn.Options{FS: m})
		if err == nil {
			err = db.Put(b("a"), b("1"))
			check(t, db.Close())
		}
		expect(t, err, cairn.ErrNoSpace)
		m.SetCapacity(0)
		db = openAt(t, "/db", &cairn.Options{FS: m})
		wantKeys(t, db)
		put(t, db, "a", "1")
		check(t, db.Close())
	}
}

// TestReadOnlyFileSystem: everything that would write fails with EROFS and changes
// nothing; reading works.
func TestReadOnlyFileSystem(t *testing.T) {
	m := memfs.New()
	db := openAt(t, "/db", &cairn.Options{FS: m})
	put(t, db, "a", "1")
	check(t, db.Close())
	before := m.Clone()
	f := faultfs.New(m)
	f.Add(faultfs.Rule{Kinds: faultfs.Mutations, Sticky: true, Do: faultfs.Fail(syscall.EROFS)})
	_, err := cairn.Open("/new", &cairn.Options{FS: f})
	expect(t, err, syscall.EROFS)
	readOnly := openAt(t, "/db", &cairn.Options{FS: f, ReadOnly: true})
	wantValue(t, readOnly, "a", "1")
	check(t, readOnly.Close())
	db, err = cairn.Open("/db", &cairn.Options{FS: f})
	check(t, err) // a clean store: opening it writes nothing
	wantValue(t, db, "a", "1")
	expect(t, db.Put(b("a"), b("2")), syscall.EROFS)
	wantValue(t, db, "a", "1")
	if err := db.Close(); err != nil {
		t.Log("close:", err)
	}
	if !m.Equal(before) {
		t.Error("something has changed")
	}
}

// TestFailedSync: the store is poisoned: it can be read but not written, until it
// is opened again.
func TestFailedSync(t *testing.T) {
	m := memfs.New()
	f := faultfs.New(m)
	opts := &cairn.Options{FS: f}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	put(t, db, "a", "1")
	f.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
	err = db.Put(b("a"), b("2"))
	expect(t, err, cairn.ErrCommitUnknown)
	expect(t, err, syscall.EIO)
	for range 2 {
		expect(t, db.Put(b("b"), b("2")), cairn.ErrPoisoned)
		expect(t, db.Sync(), cairn.ErrPoisoned)
		wantValue(t, db, "a", "1")
		wantValue(t, db, "b", "")
	}
	for deadline := time.Now().Add(5 * time.Second); !errors.Is(db.Stats().BackgroundError, cairn.ErrPoisoned); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("Stats say", db.Stats().BackgroundError)
		}
	}
	expect(t, db.Close(), cairn.ErrPoisoned)
	check(t, db.Close())
	db = openAt(t, "/db", opts)
	v, err := db.Get(b("a"))
	if err != nil || string(v) != "1" && string(v) != "2" {
		t.Errorf("%q, %v", v, err)
	}
	put(t, db, "a", "3")
}

// TestForeignDirectory: other files in the directory are not touched.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	foreign := map[string]string{"README": "hello", "1.sst": "mine", "data.log": "mine", "MANIFEST-x": "mine", ".hidden": ""}
	for name, data := range foreign {
		check(t, os.WriteFile(filepath.Join(dir, name), b(data), 0o600))
	}
	check(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	for range 3 {
		db := openAt(t, dir, nil)
		put(t, db, "a", "1")
		check(t, db.Compact(t.Context(), cairn.Range{}))
		check(t, db.Close())
	}
	for name, want := range foreign {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// TestMissingLogSegment: a log that misses a segment is damaged, not torn, wherever
// the segment stood.
func TestMissingLogSegment(t *testing.T) {
	open := openUnclean(t, cairn.Options{Durability: cairn.Relaxed, Memory: 64 << 20})
	for i := range 3000 {
		put(t, open.DB, fmt.Sprintf("key%04d", i), fmt.Sprintf("%0300d", i))
	}
	dir := open.kill(t)
	missed := 0
	for name, data := range contents(t, dir) {
		if filepath.Ext(name) != ".log" {
			continue
		}
		check(t, os.Remove(name))
		db, err := cairn.Open(dir, &cairn.Options{ReadOnly: true})
		if err == nil { // one that the manifest no longer needs
			check(t, db.Close())
		} else {
			missed++
			expect(t, err, cairn.ErrCorrupt)
			if !strings.Contains(err.Error(), filepath.Base(name)) {
				t.Errorf("%v does not name %s", err, filepath.Base(name))
			}
		}
		check(t, os.WriteFile(name, b(data), 0o644))
	}
	if missed == 0 {
		t.Error("no segment was missed")
	}
}
