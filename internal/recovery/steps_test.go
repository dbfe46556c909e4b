package recovery

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/internal/wal"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// full is a recovery whose disk has the space for the table of one memtable at a time.
func full(t *testing.T, disk vfs.FS) *replayed {
	t.Helper()
	r := open(t, disk, false)
	write := r.WriteMemory
	r.WriteMemory = func(mems []*tree.Memory, bottom bool) ([]*tree.Handle, error) {
		if len(mems) > 1 {
			return nil, fmt.Errorf("write: %w", vfs.ErrNoSpace)
		}
		return write(mems, bottom)
	}
	return r
}

// fullKeys are those of a store whose disk is full.
const fullKeys = "a b c d e"

// newFull is a store whose disk is full. It has a large transaction in its log, a segment whose edit was lost, one that is missing, and what
// an interrupted flush and another Open have left.
func newFull(t *testing.T) *written {
	t.Helper()
	w, _, _ := newIngested(t)
	w.ok(w.disk.WriteFile("/db/000050.sst", []byte("cairnSST")))
	w.ok(w.disk.WriteFile("/db/MANIFEST-000001", []byte("cairnMAN")))
	w.ok(w.disk.WriteFile(path(60), w.stray(60, true)))
	w.ok(w.disk.Remove(path(w.begin(true).Num)))
	return w
}

// TestSteps: where the disk is full the log becomes tables in steps, each of which frees its segment.
func TestSteps(t *testing.T) {
	disk := faultfs.New(newFull(t).disk)
	disk.StartTrace()
	r := full(t, disk)
	if err := r.run(); err != nil || !slices.Equal(r.flushed, []int{1, 1, 1, 1}) { // the first one twice
		t.Fatalf("runs of %v memtables, %v", r.flushed, err)
	}
	names, err := r.FS.List("/db")
	var left []string
	manifests := 0
	for _, name := range names {
		switch kind, _ := base.ParseFileName(name); {
		case kind == base.FileManifest:
			manifests++
		case kind == base.FileLog || name == "000050.sst":
			left = append(left, name)
		}
	}
	if want := []string{"000005.log", "000060.log"}; err != nil || !slices.Equal(left, want) || manifests != 2 {
		t.Errorf("%v and %d manifests are left, want %v and that of the last step; %v", left, manifests, want, err)
	}
	if len(r.Opened) != 3 || len(r.Written) != 1 || r.Dropped().From>>32 != 60 {
		t.Errorf("%d tables are named, and %d of the last step; dropped %+v", len(r.Opened), len(r.Written), r.Dropped())
	}
	if got := r.contents(); got != fullKeys {
		t.Errorf("%q", got)
	}
	made := disk.Trace(faultfs.Create, faultfs.Remove)
	removed := slices.IndexFunc(made, func(e faultfs.Event) bool { return filepath.ToSlash(e.Name) == "/db/000050.sst" })
	if at := slices.IndexFunc(made, func(e faultfs.Event) bool { return strings.Contains(e.Name, "MANIFEST") }); removed > at {
		t.Error("a manifest is made before there is space for it")
	}
	held := map[string]int{}
	for _, e := range disk.Trace(faultfs.Create, faultfs.Open, faultfs.Close) {
		if e.Kind == faultfs.Close {
			held[e.Name]--
		} else if e.Err == nil {
			held[e.Name]++
		}
	}
	for name, n := range held {
		if n != 0 {
			t.Errorf("%s was opened %d times more than closed", name, n)
		}
	}
}

// TestStepsKeepTables: where a segment has more damaged frames than are looked at, of which any may be the one that names a
// table, no table is removed.
func TestStepsKeepTables(t *testing.T) {
	for _, damaged := range []int{0, 50} {
		w := newFull(t)
		last := w.segs[2]
		b, err := w.disk.ReadFile(path(last.Num))
		w.ok(err)
		end, _ := last.Tail()
		off := int(end.Offset())
		for range damaged { // each claims everything up to the end
			frame.PutSummed(b[off:], frame.NewIdentity(last.File), int64(off), len(b)-off-frame.HeaderBytes, 1,
				frame.Header{Kind: frame.KindIngest, Seq: 1, Count: 1})
			off += frame.HeaderBytes
		}
		w.ok(w.disk.WriteFile(path(last.Num), b))
		r := full(t, w.disk)
		if err := r.run(); err != nil {
			t.Fatal(err)
		}
		if _, err := w.disk.Stat("/db/000050.sst"); (err == nil) != (damaged > 0) {
			t.Errorf("%d damaged frames, a table that none of the whole ones names: %v", damaged, err)
		}
		if got := r.contents(); got != fullKeys {
			t.Errorf("%d damaged frames: %q", damaged, got)
		}
	}
}

// TestStepsFail: an error and a power cut between any two changes leave what was there.
func TestStepsFail(t *testing.T) {
	for at := int64(1); ; at++ {
		w := newFull(t)
		disk := faultfs.New(w.disk)
		rule := disk.Add(faultfs.Rule{Kinds: faultfs.Mutations, At: at, Sticky: true, Do: faultfs.Fail(syscall.EIO)})
		r := full(t, disk)
		err := r.run()
		if rule.Fired() == 0 {
			break
		}
		for _, h := range r.Opened {
			h.Reader.Close()
		}
		for _, choice := range []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()} {
			again := open(t, w.disk.Crash(choice), false)
			if !again.State.Clean { // else all is in tables, and only to say so has failed
				if err := again.run(); err != nil {
					t.Fatalf("operation %d failed: %v", at, err)
				}
			}
			if got := again.contents(); got != fullKeys {
				t.Errorf("operation %d failed with %v: %q is left", at, err, got)
			}
		}
	}
}

// TestStepsForgetNames: a sync of the directory failed before, and what it has lost no later one brings back: a power cut may take away the
// names of provisional segments, in steps as before them. The log ends there, and what is in tables stays.
func TestStepsForgetNames(t *testing.T) {
	const keys = "a b c d e"
	for at, done := int64(1), false; !done; at++ {
		w := newWritten(t)
		for i, key := range strings.Fields(keys) {
			w.commit(w.segment(i > 1), 0, key)
		}
		w.Lock()
		_, err := w.Append(new(manifest.Edit)) // their records are durable
		w.Unlock()
		w.ok(errors.Join(err, w.disk.Remove(path(w.segs[4].Num)))) // one is missing before
		disk := faultfs.New(w.disk)
		rule := disk.Add(faultfs.Rule{Kinds: faultfs.Mutations, At: at, Sticky: true, Do: faultfs.Fail(syscall.EIO)})
		r := full(t, disk)
		err = r.run()
		done = rule.Fired() == 0
		for _, h := range append(r.Opened, r.Written...) {
			h.Reader.Close()
		}
		for _, choice := range []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()} {
			for _, lost := range [][]*wal.Segment{w.segs[2:], w.segs[3:], w.segs[2:3]} {
				cut := w.disk.Crash(choice)
				for _, s := range lost {
					cut.Remove(path(s.Num)) // it may have gone already
				}
				again := open(t, cut, false)
				if !again.State.Clean {
					if err := again.run(); err != nil {
						t.Fatalf("operation %d failed with %v, %d names are lost: %v", at, err, len(lost), err)
					}
				}
				if got := again.contents(); len(got) < len("a b") || !strings.HasPrefix(keys, got) {
					t.Errorf("operation %d failed with %v, %d names are lost: %q is left", at, err, len(lost), got)
				}
			}
		}
	}
}
