package manifest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// exampleStore is the worked example of docs/format/manifest.md.
func exampleStore(t testing.TB) (manifest, line []byte) {
	t.Helper()
	s, err := firstState("db", testStore, 3, segments(2))
	if err != nil {
		t.Fatal(err)
	}
	f := &file{current: current{Manifest: 3, File: testID(0x10), Store: testStore}}
	f.encode(s, maxPartBytes)
	add := func(kind frame.Kind, ordinal uint64, e *Edit) {
		off := int64(len(f.buf))
		g := group{id: f.id, sum: f.sum, durable: uint64(off), ordinal: ordinal, parts: maxPartBytes}
		f.buf, f.sum = append(f.buf, g.append(nil, off, kind, e.Append(nil))...), g.sum
	}
	table := tab(4, "ant", "cat")
	add(frame.KindEdit, 2, &Edit{LastSeq: 13, Added: []Added{{Level: 0, Run: 4, Table: table}}})
	add(frame.KindEdit, 3, &Edit{LogStart: 3})
	add(frame.KindSeal, 3, new(Edit))
	return f.buf, f.line()
}

// dump formats bytes as the document shows them.
func dump(b []byte) string { return strings.TrimRight(hex.Dump(b), "\n") }

func TestWorkedExample(t *testing.T) {
	manifest, line := exampleStore(t)
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "format", "manifest.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(doc, []byte(dump(manifest))) {
		t.Errorf("docs/format/manifest.md does not show\n%s", dump(manifest))
	}
	if !bytes.Contains(doc, line) {
		t.Errorf("docs/format/manifest.md does not show\n%s", line)
	}
	fsys := memfs.New()
	fsys.MkdirAll("db")
	fsys.WriteFile("db/MANIFEST-000003", manifest)
	fsys.WriteFile("db/CURRENT", line)
	s := mustRecover(t, fsys)
	if !s.Clean || s.Version.NumTables() != 1 || s.LastSeq != 13 || s.LogStart != 3 || s.NextFileNum != 5 {
		t.Errorf("state %+v", s)
	}
}

// Promise 6 and 8: after a clean close every changed bit gives a typed error or
// the same contents.
func TestEveryFlipAfterACleanClose(t *testing.T) {
	fsys, want := closedStore(t)
	harmless, total := 0, 0
	for _, name := range []string{"db/MANIFEST-000001", "db/CURRENT"} {
		good, _ := fsys.ReadFile(name)
		for bit := range 8 * len(good) {
			total++
			if err := fsys.FlipBit(name, int64(bit)); err != nil {
				t.Fatal(err)
			}
			s, err := Recover(fsys, "db", bit%2 == 0)
			switch {
			case err == nil:
				wantSame(t, s, want)
				if s.Clean {
					t.Fatalf("bit %d of %s changed nothing at all", bit, name)
				}
				harmless++
			case !isTyped(err):
				t.Fatalf("bit %d of %s: %v", bit, name, err)
			}
			fsys.FlipBit(name, int64(bit))
		}
	}
	sealed, _ := fsys.ReadFile("db/MANIFEST-000001")
	if behind := len(sealed) - int(frameBytes(t, sealed)); harmless != 8*(frame.HeaderBytes+behind) { // the seal, and zeros
		t.Errorf("%d of %d flips are harmless", harmless, total)
	}
	wantSame(t, mustRecover(t, fsys), want)
}

func TestEveryFlipAndCutOfAStoreSealedAtBirth(t *testing.T) {
	fsys := memfs.New()
	fsys.MkdirAll("db")
	if err := CreateSealed(fsys, "db", testStore, 1, stamped(1)); err != nil {
		t.Fatal(err)
	}
	const name = "db/MANIFEST-000001"
	want, good := mustRecover(t, fsys), []byte(nil)
	good, _ = fsys.ReadFile(name)
	seal := len(good) - frame.HeaderBytes
	for at := range good {
		flipped := bytes.Clone(good)
		flipped[at] ^= 1
		for what, bad := range map[string][]byte{"flip": flipped, "cut": good[:at]} {
			fsys.WriteFile(name, bad)
			s, err := Recover(fsys, "db", false)
			switch {
			case at < seal && !isTyped(err):
				t.Fatalf("%s at %d: %v", what, at, err)
			case at >= seal && err != nil:
				t.Fatalf("%s at %d, in the seal: %v", what, at, err)
			case at >= seal:
				wantSame(t, s, want)
			}
		}
	}
}

// A flip in an edit that a later frame's mark covers is corruption, before the
// close too; one in the last edit drops it and says so.
func TestFlipsInALiveManifest(t *testing.T) {
	fsys := memfs.New()
	l := newLog(t, fsys, segments(2))
	mustAppend(t, l, stamped(1))
	before, last := l.State(), l.Size()
	mustAppend(t, l, stamped(2))
	const name = "db/MANIFEST-000001"
	try := func(mark bool) {
		t.Helper()
		good, _ := fsys.ReadFile(name)
		for off := range int64(len(good)) {
			fsys.Corrupt(name, off, 0x10)
			s, err := Recover(fsys, "db", false)
			switch {
			case err == nil && off >= l.Size(): // zeros up to here
				wantSame(t, s, l.State())
				if s.Tail.From != l.Size() || s.Tail.Bytes != off+1-l.Size() {
					t.Fatalf("flip at %d: tail %+v", off, s.Tail)
				}
			case err != nil && isTyped(err) && (off < last || mark):
			case err == nil && !mark && off >= last:
				wantSame(t, s, before)
				if s.Tail.From != last || s.Tail.Bytes != l.Size()-last {
					t.Fatalf("flip at %d: tail %+v", off, s.Tail)
				}
			case err == nil && mark && off >= l.Size()-frame.HeaderBytes:
				wantSame(t, s, l.State())
			default:
				t.Fatalf("flip at %d, mark %t: %+v, %v", off, mark, s, err)
			}
			fsys.Corrupt(name, off, 0x10)
		}
	}
	try(false)
	if err := l.Mark(); err != nil {
		t.Fatal(err)
	}
	try(true)
}

// A manifest cut at any length is the store after some edit, or corrupt if the cut
// is in its snapshot. After a clean close a cut one still has a live segment, so
// that the loss is seen by the segment being gone.
func TestEveryCut(t *testing.T) {
	fsys, want := closedStore(t)
	const name = "db/MANIFEST-000001"
	good, _ := fsys.ReadFile(name)
	list, offs := frames(t, good)
	for n := range frameBytes(t, good) {
		if err := fsys.WriteFile(name, good[:n]); err != nil {
			t.Fatal(err)
		}
		s, err := Recover(fsys, "db", false)
		snapshotEnd := offs[0] + int64(list[0].Length)
		switch {
		case int64(n) < snapshotEnd:
			if !isTyped(err) {
				t.Fatalf("cut at %d: %v", n, err)
			}
		case err != nil:
			t.Fatalf("cut at %d: %v", n, err)
		case s.Clean:
			t.Fatalf("cut at %d is clean", n)
		case int64(n) >= offs[len(offs)-1]:
			wantSame(t, s, want)
		case len(s.Segments) == 0:
			t.Fatalf("cut at %d: nothing tells that edits are missing", n)
		}
	}
	for n := frameBytes(t, good) + 1; n < int64(len(good)); n++ {
		fsys.WriteFile(name, good[:n])
		s := mustRecover(t, fsys)
		wantSame(t, s, want)
		if s.Clean {
			t.Fatalf("cut at %d, in the zeros, is clean", n)
		}
	}
}

// Frames that are whole but in the wrong place are corruption: swapped, repeated,
// left out, or taken from another file.
func TestMisplacedFrames(t *testing.T) {
	fsys, _ := closedStore(t)
	const name = "db/MANIFEST-000001"
	good, _ := fsys.ReadFile(name)
	list, offs := frames(t, good)
	part := func(i int) []byte { return good[offs[i] : offs[i]+int64(list[i].Length)] }
	other, _ := closedStore(t)
	foreign, _ := other.ReadFile(name)
	for what, bad := range map[string][]byte{
		"left out": append(bytes.Clone(good[:offs[1]]), good[offs[2]:]...),
		"repeated": append(append(bytes.Clone(good[:offs[2]]), part(1)...), good[offs[2]:]...),
		"swapped":  bytes.Join([][]byte{good[:offs[1]], part(2), part(1), good[offs[3]:]}, nil),
		"foreign":  append(bytes.Clone(good[:offs[1]]), foreign[offs[1]:]...),
		"whole":    foreign,
		"zeroed":   append(append(bytes.Clone(good[:offs[1]]), make([]byte, list[1].Length)...), good[offs[2]:]...),
	} {
		fsys.WriteFile(name, bad)
		s, err := Recover(fsys, "db", false)
		if what == "foreign" || what == "left out" || what == "repeated" {
			// No frame behind the hole is where it was written: all of it is a tail.
			if err != nil || s.Tail.Bytes == 0 || s.Clean || len(s.Segments) == 0 {
				t.Errorf("%s: %+v, %v", what, s, err)
			}
			continue
		}
		if !isTyped(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// raw is a frame to be; build gives it its checksums and its place in the chain.
type raw struct {
	h       frame.Header
	payload []byte
}

func build(id base.ID, frames []raw) []byte {
	buf := base.AppendFileHeader(nil, base.FileHeader{Type: base.FileManifest, Version: 1, File: id, Store: testStore, Num: 1})
	prev := uint32(0)
	for _, r := range frames {
		start := len(buf)
		buf = append(buf, make([]byte, frame.PaddedBytes(len(r.payload)))...)
		copy(buf[start+frame.HeaderBytes:], r.payload)
		r.h.Prev = prev
		prev = frame.Put(buf[start:], frame.NewIdentity(id), int64(start), len(r.payload), r.h).Sum
	}
	return buf
}

func TestFramesThatCannotBe(t *testing.T) {
	snapshot := segments(2).Append(nil)
	edit := (&Edit{LastSeq: 9}).Append(nil)
	E, S, M := frame.KindEdit, frame.KindSeal, frame.KindMark
	first := raw{frame.Header{Kind: E, Seq: 1}, snapshot}
	for what, list := range map[string][]raw{
		"no snapshot":        {{frame.Header{Kind: S}, nil}},
		"nothing":            {},
		"mark first":         {{frame.Header{Kind: M}, nil}, first},
		"snapshot with gaps": {{frame.Header{Kind: E, Seq: 2}, snapshot}},
		"ordinal":            {first, {frame.Header{Kind: E, Seq: 3}, edit}},
		"ordinal again":      {first, {frame.Header{Kind: E, Seq: 1}, edit}},
		"mark's ordinal":     {first, {frame.Header{Kind: M, Seq: 2}, nil}},
		"commit":             {first, {frame.Header{Kind: frame.KindCommit, Seq: 1}, nil}},
		"mark with payload":  {first, {frame.Header{Kind: M, Seq: 1}, edit}},
		"mark with parts":    {first, {frame.Header{Kind: M, Seq: 1, Count: 1}, nil}},
		"durable mark":       {first, {frame.Header{Kind: E, Seq: 2, Durable: 1 << 20}, edit}},
		"after the seal":     {first, {frame.Header{Kind: S, Seq: 1}, nil}, {frame.Header{Kind: E, Seq: 2}, edit}},
		"parts":              {first, {frame.Header{Kind: E, Seq: 2, Count: 2}, edit}, {frame.Header{Kind: E, Seq: 2, Count: 0}, nil}},
		"parts and seal":     {first, {frame.Header{Kind: E, Seq: 2, Count: 1}, edit}, {frame.Header{Kind: S, Seq: 1}, nil}},
		"bad edit":           {first, {frame.Header{Kind: E, Seq: 2}, (&Edit{Removed: []Removed{{1, 9}}}).Append(nil)}},
		"garbage":            {first, {frame.Header{Kind: E, Seq: 2}, []byte{1, 2, 3}}},
		"overlap": {first, {frame.Header{Kind: E, Seq: 2}, (&Edit{Added: []Added{
			{Level: 1, Table: tab(7, "a", "c")}, {Level: 1, Table: tab(8, "b", "d")}}}).Append(nil)}},
	} {
		s, err := decode(build(testID(1), list), "name", current{Manifest: 1, File: testID(1), Store: testStore})
		var c *base.CorruptionError
		if !errors.As(err, &c) || c.File != "name" || c.Offset < 0 {
			t.Errorf("%s: %+v, %v", what, s, err)
		}
	}
	good := []raw{first, {frame.Header{Kind: E, Seq: 2, Count: 1}, edit[:1]}, {frame.Header{Kind: E, Seq: 2}, edit[1:]}, {frame.Header{Kind: S, Seq: 2}, nil}}
	if s, err := decode(build(testID(1), good), "name", current{Manifest: 1, File: testID(1), Store: testStore}); err != nil || s.LastSeq != 9 || !s.Clean {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestUnknownOptionalFieldsAreReadOnly(t *testing.T) {
	fsys := memfs.New()
	fsys.MkdirAll("db")
	buf := build(testID(1), []raw{{frame.Header{Kind: frame.KindEdit, Seq: 1}, appendField(segments(2).Append(nil), 60<<1, []byte("new"))}})
	fsys.WriteFile("db/MANIFEST-000001", buf)
	fsys.WriteFile("db/CURRENT", current{1, testID(1), testStore}.line())
	if s, err := Recover(fsys, "db", true); err != nil || len(s.Segments) != 1 {
		t.Errorf("for reading: %+v, %v", s, err)
	}
	if _, err := Recover(fsys, "db", false); !errors.Is(err, base.ErrFormatTooNew) {
		t.Errorf("for writing: %v", err)
	}
	buf = build(testID(1), []raw{{frame.Header{Kind: frame.KindEdit, Seq: 1}, appendField(segments(2).Append(nil), 60<<1|1, nil)}})
	fsys.WriteFile("db/MANIFEST-000001", buf)
	if _, err := Recover(fsys, "db", true); !errors.Is(err, base.ErrFormatTooNew) {
		t.Errorf("a field that has to be understood: %v", err)
	}
}

func TestZerosBehindTheEndAreNothing(t *testing.T) {
	fsys, want := closedStore(t)
	const name = "db/MANIFEST-000001"
	good, _ := fsys.ReadFile(name)
	fsys.WriteFile(name, append(bytes.Clone(good), make([]byte, 5*fileUnit)...))
	if s := mustRecover(t, fsys); !s.Clean || s.Tail != (Tail{}) {
		t.Errorf("zeros: %+v", s)
	}
	fsys.WriteFile(name, append(append(bytes.Clone(good), make([]byte, 5*fileUnit)...), 1))
	s := mustRecover(t, fsys)
	wantSame(t, s, want)
	if end := frameBytes(t, good); s.Clean || s.Tail != (Tail{Bytes: int64(len(good)) + 5*fileUnit + 1 - end, From: end}) {
		t.Errorf("something: %+v", s)
	}
}

func TestRecoverReportsReadErrors(t *testing.T) {
	for n := int64(1); ; n++ {
		disk, _ := closedStore(t)
		fsys := faultfs.New(disk)
		rule := fsys.Add(faultfs.Rule{Kinds: faultfs.Open | faultfs.Read | faultfs.Size, At: n, Do: faultfs.Fail(syscall.EIO)})
		_, err := Recover(fsys, "db", false)
		if rule.Fired() == 0 {
			if n != 7 || err != nil {
				t.Fatalf("%d operations, %v", n-1, err)
			}
			return
		}
		if !errors.Is(err, syscall.EIO) || errors.Is(err, base.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("operation %d: %v", n, err)
		}
	}
}

func TestRecoverChangesNothing(t *testing.T) {
	disk, _ := closedStore(t)
	fsys := faultfs.New(disk)
	fsys.Add(faultfs.Rule{Kinds: faultfs.Mutations | faultfs.Lock, Do: faultfs.Fail(syscall.EIO), Sticky: true})
	for _, readOnly := range []bool{false, true} {
		if _, err := Recover(fsys, "db", readOnly); err != nil {
			t.Error(err)
		}
	}
}

// A reader that finds the manifest replaced, or half of an edit written, looks again.
func TestReadOnlyRecoverBesideAWriter(t *testing.T) {
	disk := memfs.New()
	l := newLog(t, disk, segments(2))
	mustAppend(t, l, stamped(0))
	calls, edits := 0, 0
	fsys := &hookFS{FS: disk, open: func(name string) {
		if calls++; strings.Contains(name, "MANIFEST") && calls < 8 {
			next, err := l.Rotate(uint64(1000 + edits))
			if err != nil {
				t.Fatal(err)
			}
			disk.Remove(l.name)
			l = next
			edits++
			mustAppend(t, l, stamped(edits))
		}
	}}
	s, err := Recover(fsys, "db", true)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, s, l.State())
	calls = 0
	if _, err := Recover(fsys, "db", false); !errors.Is(err, base.ErrCorrupt) {
		t.Errorf("for writing: %v", err)
	}
}

// hookFS calls open before each Open.
type hookFS struct {
	vfs.FS
	open func(name string)
}

func (h *hookFS) Open(name string) (vfs.File, error) {
	h.open(name)
	return h.FS.Open(name)
}

// FuzzRecover reads manifests whose header and checksums are right but whose
// frames hold anything.
func FuzzRecover(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := NewState(testStore)
	var script []byte
	for i := range 6 {
		e := randomEdit(rng, s)
		b := e.Append(nil)
		script = append(script, byte(frame.KindEdit), byte(i+1), 0, 0, byte(len(b)), byte(len(b)>>8))
		script = append(script, b...)
		s, _ = s.Apply(e)
		f.Add(bytes.Clone(script), uint16(0), byte(0))
	}
	f.Add(script, uint16(300), byte(1))
	f.Fuzz(func(t *testing.T, script []byte, at uint16, flip byte) {
		buf := build(testID(1), parseScript(script))
		if int(at) < len(buf) {
			buf[at] ^= flip
		}
		s, err := decode(buf, "name", current{Manifest: 1, File: testID(1), Store: testStore})
		if err != nil {
			if !isTyped(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := firstState("db", testStore, 1, s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, again, s)
	})
}

// parseScript turns fuzzed bytes into frames: kind, ordinal, count, mark, length (2), payload.
func parseScript(b []byte) (list []raw) {
	for len(b) >= 6 {
		n := min(int(b[4])|int(b[5])<<8, len(b)-6)
		h := frame.Header{Kind: frame.Kind(b[0] % 8), Seq: uint64(b[1]), Count: uint32(b[2]), Durable: uint64(b[3])}
		list = append(list, raw{h, b[6 : 6+n]})
		b = b[6+n:]
	}
	return list
}

// TestClaimsOfWhatIsToCome: an edit that says of sequences, or of log segments, that are not there yet what would harm them later is damage, whether the
// snapshot says it or a later edit, and is not written.
func TestClaimsOfWhatIsToCome(t *testing.T) {
	for what, c := range map[string]struct {
		claim *Edit
		right bool
	}{
		"all sequences are ingested":    {&Edit{LastSeq: 7, IngestedThrough: 7}, true},
		"those of its table are":        {&Edit{Added: stamped(0).Added, IngestedThrough: 109}, true},
		"the next sequence is ingested": {&Edit{LastSeq: 7, IngestedThrough: 8}, false},
		"the next of its table is":      {&Edit{Added: stamped(0).Added, IngestedThrough: 110}, false},
		"each sequence there can be is": {&Edit{IngestedThrough: base.MaxSeq}, false},
		"no log is needed":              {&Edit{LogStart: 400, NextFileNum: 400}, true},
		"nor any that there can be":     {&Edit{LogStart: NoLog(maxFileNum), NextFileNum: maxFileNum}, true},
		"the log starts behind all":     {&Edit{LogStart: 301}, true},
		"the log starts later":          {&Edit{LogStart: 302}, false},
		"it starts beyond the next":     {&Edit{LogStart: 401, NextFileNum: 400}, false},
		"the log never starts":          {&Edit{LogStart: MaxSegmentNum + 1}, false},
		"all segments are synced":       {&Edit{Provisional: 301}, true},
		"the next one is, too":          {&Edit{Provisional: 302}, false},
		"each there can be is":          {&Edit{Provisional: MaxSegmentNum + 1, NextFileNum: MaxSegmentNum}, false},
	} {
		claim := *c.claim
		claim.Segments = segments(300).Segments
		for at := range 2 {
			f := &file{current: current{Manifest: 3, File: testID(0x10), Store: testStore}}
			f.encode(NewState(testStore), maxPartBytes)
			if at == 0 { // instead of the snapshot
				f.buf, f.sum = f.buf[:base.FileHeaderBytes], 0
			}
			f.append(frame.KindEdit, uint64(at+1), claim.Append(nil))
			fsys := memfs.New()
			fsys.MkdirAll("db")
			fsys.WriteFile("db/MANIFEST-000003", f.buf)
			fsys.WriteFile("db/CURRENT", f.line())
			for _, readOnly := range []bool{true, false} {
				_, err := Recover(fsys, "db", readOnly)
				if c.right && err != nil || !c.right && (!errors.Is(err, base.ErrCorrupt) || !strings.Contains(err.Error(), "MANIFEST-000003")) {
					t.Errorf("%s, edit %d, read-only %v: %v", what, at+1, readOnly, err)
				}
			}
		}
		if _, err := newLog(t, memfs.New(), segments(2)).Append(&claim); c.right != (err == nil) {
			t.Errorf("%s: Append: %v", what, err)
		}
	}
}
