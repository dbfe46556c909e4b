package crashtest

import (
	"errors"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestHeaders flips every bit of a file header. Bytes that mean nothing yet are
// under the checksum as well, or a later version could not use them.
func TestHeaders(t *testing.T) {
	for _, typ := range []base.FileType{base.FileLog, base.FileTable, base.FileManifest} {
		good := base.AppendFileHeader(nil, base.FileHeader{Type: typ, Version: base.FormatVersion, File: base.NewID(), Store: base.NewID(), Num: 7})
		if _, err := base.DecodeFileHeader(good, typ, "f"); err != nil {
			t.Fatal(err)
		}
		for bit := range 8 * len(good) {
			bad := append([]byte(nil), good...)
			bad[bit/8] ^= 1 << (bit % 8)
			if _, err := base.DecodeFileHeader(bad, typ, "f"); !errors.Is(err, base.ErrCorrupt) {
				t.Errorf("type %d, bit %d flipped: %v", typ, bit, err)
			}
		}
	}
}

// TestSyncInterval waits for the background sync of a relaxed commit.
func TestSyncInterval(t *testing.T) {
	disk := memfs.New()
	s, err := open(&cairn.Options{FS: disk, Durability: cairn.Relaxed, SyncInterval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit([]Op{{base.KindPut, "k", "v"}}, false); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if held(t, disk) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a relaxed commit is not durable 10 seconds after it was made, with SyncInterval at one millisecond")
		}
	}
}

// held reports whether the commit would survive a power cut now.
func held(t *testing.T, disk *memfs.FS) bool {
	s, err := Open(disk.Crash(memfs.SyncedOnly()), true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, ok, err := s.Get("k")
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
