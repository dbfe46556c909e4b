package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

var someCurrent = current{Manifest: 7, File: testID(0x10), Store: testStore}

func TestCurrentGoldenLine(t *testing.T) {
	want := "cairn 1 MANIFEST-000007 101112131415161718191a1b1c1d1e1f a0a1a2a3a4a5a6a7a8a9aaabacadaeaf "
	want += fmt.Sprintf("%08x\n", crc32.Checksum([]byte(want), base.Castagnoli))
	if got := string(someCurrent.line()); got != want {
		t.Fatalf("%q, want %q", got, want)
	}
	c, err := parseCurrent([]byte(want), "CURRENT")
	if err != nil || c != someCurrent {
		t.Fatalf("%+v, %v", c, err)
	}
	great := current{Manifest: 1<<64 - 1}
	if n := len(great.line()); n > maxCurrentBytes {
		t.Errorf("a line can have %d bytes", n)
	}
}

func TestCurrentRefusesEveryOtherLine(t *testing.T) {
	good := string(someCurrent.line())
	try := func(line string) {
		t.Helper()
		if c, err := parseCurrent([]byte(line), "CURRENT"); !errors.Is(err, base.ErrCorrupt) {
			t.Fatalf("%q: %+v, %v", line, c, err)
		}
	}
	for i := range len(good) {
		for bit := range 8 {
			b := []byte(good)
			b[i] ^= 1 << bit
			try(string(b))
		}
		try(good[:i])
		try(good[:i] + good[i+1:])
	}
	try(good + "\n")
	try(good + good)
	try(" " + good)
	// Lines whose checksum matches.
	sum := func(s string) string { return s + fmt.Sprintf("%08x\n", crc32.Checksum([]byte(s), base.Castagnoli)) }
	id, store := "101112131415161718191a1b1c1d1e1f", "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf"
	for _, s := range []string{
		"cairn 1 MANIFEST-000007 " + id + " " + store + "  ",
		"cairn 1 MANIFEST-7 " + id + " " + store + " ",
		"cairn 1 ../MANIFEST-000007 " + id + " " + store + " ",
		"cairn 1 000007.sst " + id + " " + store + " ",
		"cairn 1 MANIFEST-000007 " + strings.ToUpper(id) + " " + store + " ",
		"cairn 1 MANIFEST-000007 " + id + "00 " + store + " ",
		"cairn 1 MANIFEST-000007 " + id[2:] + " " + store + " ",
		"cairn 1 MANIFEST-000007 " + id + " ",
		"cairn 0 MANIFEST-000007 " + id + " " + store + " ",
		"cairn 01 MANIFEST-000007 " + id + " " + store + " ",
		"stone 1 MANIFEST-000007 " + id + " " + store + " ",
		"",
	} {
		try(sum(s))
	}
	for _, s := range []string{"cairn 2 MANIFEST-000007 ", "cairn 17 anything else at all "} {
		if _, err := parseCurrent([]byte(sum(s)), "CURRENT"); !errors.Is(err, base.ErrFormatTooNew) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestCurrentAndManifestBelongTogether(t *testing.T) {
	fsys, _ := closedStore(t)
	other, _ := closedStore(t)
	line, _ := other.ReadFile("db/CURRENT")
	fsys.WriteFile("db/CURRENT", line)
	if _, err := Recover(fsys, "db", false); !isTyped(err) {
		t.Errorf("CURRENT of another store: %v", err)
	}
	buf := build(testID(1), []raw{{frame.Header{Kind: frame.KindEdit, Seq: 1}, nil}})
	for _, c := range []current{{2, testID(1), testStore}, {1, testID(2), testStore}, {1, testID(1), testID(3)}} {
		if _, err := decode(buf, "name", c); !isTyped(err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := decode(buf, "name", current{1, testID(1), testStore}); err != nil {
		t.Error(err)
	}
	fsys, _ = closedStore(t)
	fsys.Rename("db/MANIFEST-000001", "db/MANIFEST-000002")
	if _, err := Recover(fsys, "db", true); !isTyped(err) {
		t.Errorf("manifest missing: %v", err)
	}
	fsys.WriteFile("db/CURRENT", make([]byte, maxCurrentBytes+1))
	if _, err := Recover(fsys, "db", false); !isTyped(err) {
		t.Errorf("long CURRENT: %v", err)
	}
	fsys.WriteFile("db/CURRENT", nil)
	if _, err := Recover(fsys, "db", false); !isTyped(err) {
		t.Errorf("empty CURRENT: %v", err)
	}
}

// Without CURRENT there is no store, unless something shows that there was one.
func TestCurrentMissing(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		data []byte
		lost bool
	}{
		"nothing":                  {"LOCK", nil, false},
		"manifest of a creation":   {"MANIFEST-000001", []byte("x"), false},
		"segment of a creation":    {"000001.log", append(bytes.Repeat([]byte("x"), base.FileHeaderBytes), make([]byte, 9000)...), false},
		"segment without a header": {"000001.log", nil, false},
		"segment with a frame":     {"000002.log", append(make([]byte, base.FileHeaderBytes+8000), 1), true},
		"table":                    {"000009.sst", []byte("x"), true},
		"table made ahead":         {"000009.sst", nil, false},
	} {
		fsys := memfs.New()
		fsys.MkdirAll("db")
		fsys.WriteFile("db/"+c.name, c.data)
		_, err := Recover(fsys, "db", false)
		if c.lost && !isTyped(err) || !c.lost && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Recover(memfs.New(), "nowhere", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	disk := memfs.New()
	disk.MkdirAll("db")
	disk.WriteFile("db/000002.log", bytes.Repeat([]byte("x"), 100))
	fsys := faultfs.New(disk)
	fsys.Add(faultfs.Rule{Kinds: faultfs.List, Do: faultfs.Fail(syscall.EIO)})
	if _, err := Recover(fsys, "db", false); !errors.Is(err, syscall.EIO) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("list fails: %v", err)
	}
}

// TestSyncNotAttempted: once CURRENT has its new name, a sync of the directory that was not attempted is tried again
// until it is; before, nothing has changed.
func TestSyncNotAttempted(t *testing.T) {
	for _, at := range []int64{1, 2} {
		disk := memfs.New()
		disk.MkdirAll("db")
		disk.StartJournal()
		fsys := faultfs.New(disk)
		rule := fsys.Add(faultfs.Rule{Kinds: faultfs.SyncDir, At: at, Do: faultfs.Fail(vfs.ErrNotAttempted)})
		l, err := CreateWhen(nil, fsys, "db", testStore, 1, segments(2))
		if rule.Fired() != 1 {
			t.Fatalf("sync %d: it did not fail", at)
		}
		if at == 1 {
			names, _ := fsys.List("db")
			if !errors.Is(err, vfs.ErrNotAttempted) || errors.Is(err, base.ErrPoisoned) || len(names) > 0 {
				t.Errorf("%v, files %v", err, names)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := Recover(disk.Crash(memfs.SyncedOnly()), "db", false); err != nil {
			t.Errorf("after a power cut: %v", err)
		}
	}
}
