package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/invariants"
	"github.com/cairndb/cairn/internal/layout"
)

// smallContent fills a table of all kinds of pages in little space.
func smallContent() *content {
	c := &content{tombs: []tomb{{"k03", "k05", 9}, {"x", "z", 8}}}
	for i := range 40 {
		w := row{fmt.Sprintf("k%02d", i), uint64(i) + 1, base.KindPut, fmt.Sprint("value ", i)}
		if i%7 == 3 {
			w.kind, w.val = base.KindDelete, ""
		}
		c.rows = append(c.rows, w)
	}
	return c
}

func mustBeCorruption(t *testing.T, what string, err error) {
	t.Helper()
	var c *base.CorruptionError
	if !errors.As(err, &c) || !errors.Is(err, base.ErrCorrupt) || c.File != "7.sst" || c.Offset < 0 {
		t.Fatalf("%s: error %v", what, err)
	}
}

// survey opens a damaged file at once and lazily, and reads it every way. It returns the
// errors of Open or Verify, and checks that scans and gets say the same as the model or fail.
func survey(t *testing.T, m *room, c *content, f *memFile, meta base.TableMeta, what string) (openErr, verifyErr error) {
	t.Helper()
	_, lazyErr := surveyOpened(t, m, c, &memFile{b: f.b}, meta, what+", opened lazily", OpenLazily)
	openErr, verifyErr = surveyOpened(t, m, c, f, meta, what, Open)
	if (lazyErr == nil) != (verifyErr == nil) {
		t.Fatalf("%s: %v, opened lazily %v", what, verifyErr, lazyErr)
	}
	return openErr, verifyErr
}

func surveyOpened(t *testing.T, m *room, c *content, f *memFile, meta base.TableMeta, what string, open opener) (openErr, verifyErr error) {
	t.Helper()
	rd, err := open(f, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		mustBeCorruption(t, what, err)
		return err, err
	}
	defer rd.Close()
	if verifyErr = second(rd.Verify(context.Background(), nil)); verifyErr != nil {
		mustBeCorruption(t, what, verifyErr)
	}
	for _, noCache := range []bool{true, false} {
		it := rd.NewIter(m.slot, IterOptions{NoCache: noCache})
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			w := c.rows[n]
			if string(it.Key()) != w.key || it.Seq() != w.seq || it.Kind() != w.kind {
				t.Fatalf("%s: row %d is %q %d", what, n, it.Key(), it.Seq())
			}
			if v, err := it.Value(); err == nil && string(v) != w.val {
				t.Fatalf("%s: value of row %d is %q", what, n, v)
			}
			n++
		}
		if it.Err() != nil {
			mustBeCorruption(t, what, it.Err())
		}
		if it.Valid() || (it.Err() == nil) != (n == len(c.rows)) {
			t.Fatalf("%s: scan ended after %d rows with error %v", what, n, it.Err())
		}
		it.Close()
	}
	for _, w := range c.rows {
		got, ok, err := m.get(rd, w.key, everything)
		if err != nil {
			mustBeCorruption(t, what, err)
		} else if !ok || got != w {
			t.Fatalf("%s: get %q: %v %v", what, w.key, got, ok)
		}
	}
	return nil, verifyErr
}

func TestEveryByteFlipIsDetected(t *testing.T) {
	c := smallContent()
	m := newRoom(t, 1<<30)
	for _, codec := range codecs {
		f, meta := c.write(t, WriterOptions{Codec: codec, BlockBytes: 512})
		whole := f.b
		for i := range whole {
			for _, x := range []byte{1 << (i % 8), 0xFF} {
				if invariants.Enabled && (x == 0xFF || codec == block.None) {
					continue // the race detector makes it slow and adds nothing
				}
				b := bytes.Clone(whole)
				b[i] ^= x
				what := fmt.Sprintf("%v: byte %d ^ %02x", codec, i, x)
				if _, err := survey(t, m, c, &memFile{b: b}, meta, what); err == nil {
					t.Fatalf("%s: neither Open nor Verify saw it", what)
				}
			}
		}
	}
}

func TestEveryTruncationIsDetected(t *testing.T) {
	c := smallContent()
	m := newRoom(t, 1<<30)
	f, meta := c.write(t, WriterOptions{BlockBytes: 512})
	for n := range f.b {
		_, err := Open(&memFile{b: f.b[:n]}, meta, storeID, "7.sst", m.cache, m.budget)
		mustBeCorruption(t, fmt.Sprint("cut to ", n), err)
		lying := meta // even if the manifest agrees with the length
		lying.Size = int64(n)
		_, err = Open(&memFile{b: f.b[:n]}, lying, storeID, "7.sst", m.cache, m.budget)
		mustBeCorruption(t, fmt.Sprint("cut to ", n, " with a meta to match"), err)
	}
	_, err := Open(&memFile{b: append(bytes.Clone(f.b), 0)}, meta, storeID, "7.sst", m.cache, m.budget)
	mustBeCorruption(t, "a byte longer", err)
}

// A file that shrinks after Open, as a bad disk or a bad neighbour could make it.
func TestFileThatShrinksUnderAReader(t *testing.T) {
	c := counters(1000, 50)
	f, meta := c.write(t, WriterOptions{BlockBytes: 4096})
	m := newRoom(t, 1<<30)
	rd := m.open(t, f, meta)
	f.b = f.b[:len(f.b)/2]
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	mustBeCorruption(t, "scan", it.Err())
	if n == 0 || it.First() || it.Last() || it.SeekGE(nil) || it.SeekLT([]byte("z")) || it.Next() || it.Prev() || it.Err() == nil {
		t.Fatal("the error of an iterator does not stick")
	}
	_, err := rd.BuildIndex(context.Background())
	mustBeCorruption(t, "build index", err)
	mustBeCorruption(t, "verify", second(rd.Verify(context.Background(), nil)))
}

// Pages that are whole and checksummed, but not the ones that belong there.
func TestSwappedAndForeignPagesAreDetected(t *testing.T) {
	c := counters(64, 32) // all blocks alike in size
	m := newRoom(t, 1<<30)
	f, meta := c.write(t, WriterOptions{BlockBytes: 512})
	rd := m.open(t, &memFile{b: f.b}, meta)
	a, b := rd.index.Blocks[1], rd.index.Blocks[2]
	if a.KeyPage != b.KeyPage || a.ValuePage != b.ValuePage {
		t.Fatal("the test needs blocks of equal size")
	}
	swapped := bytes.Clone(f.b)
	n := int64(a.KeyPage + a.ValuePage)
	copy(swapped[a.Off:], f.b[b.Off:b.Off+n])
	copy(swapped[b.Off:], f.b[a.Off:a.Off+n])
	if _, err := survey(t, m, c, &memFile{b: swapped}, meta, "swapped blocks"); err == nil {
		t.Fatal("swapped blocks verify")
	}
	foreign := &memFile{}
	w := NewWriter(foreign, WriterOptions{Name: "8.sst", Num: 8, File: base.ID{8}, Store: storeID, BlockBytes: 512})
	c.addTo(t, w)
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	mixed := bytes.Clone(f.b)
	copy(mixed[a.Off:], foreign.b[a.Off:a.Off+n])
	if _, err := survey(t, m, c, &memFile{b: mixed}, meta, "a block of another file"); err == nil {
		t.Fatal("a block of another file verifies")
	}
	mixed = append(bytes.Clone(f.b[:len(f.b)-layout.FooterBytes]), foreign.b[len(foreign.b)-layout.FooterBytes:]...)
	if _, err := survey(t, m, c, &memFile{b: mixed}, meta, "the footer of another file"); err == nil {
		t.Fatal("the footer of another file verifies")
	}
}

func TestOpenComparesTheFileWithItsRecord(t *testing.T) {
	c := smallContent()
	m := newRoom(t, 1<<30)
	f, meta := c.write(t, WriterOptions{})
	for what, change := range map[string]func(*base.TableMeta){
		"number":           func(m *base.TableMeta) { m.Num++ },
		"file id":          func(m *base.TableMeta) { m.File[3]++ },
		"size":             func(m *base.TableMeta) { m.Size-- },
		"smallest":         func(m *base.TableMeta) { m.Smallest = []byte("k0") },
		"largest":          func(m *base.TableMeta) { m.Largest = []byte("z0") },
		"exclusive":        func(m *base.TableMeta) { m.LargestExclusive = false },
		"least sequence":   func(m *base.TableMeta) { m.MinSeq++ },
		"highest sequence": func(m *base.TableMeta) { m.MaxSeq++ },
		"entries":          func(m *base.TableMeta) { m.Entries++ },
		"deletes":          func(m *base.TableMeta) { m.Deletes++ },
		"range deletes":    func(m *base.TableMeta) { m.RangeDeletes-- },
		"raw bytes":        func(m *base.TableMeta) { m.RawBytes++ },
		"global sequence":  func(m *base.TableMeta) { m.GlobalSeq, m.MinSeq = 50, 51 },
	} {
		changed := meta
		change(&changed)
		_, err := Open(f, changed, storeID, "7.sst", m.cache, m.budget)
		mustBeCorruption(t, what, err)
	}
	_, err := Open(f, meta, base.ID{1}, "7.sst", m.cache, m.budget)
	mustBeCorruption(t, "store id", err)
	f.b[8] = base.FormatVersion + 1
	resealHeader(f.b)
	if _, err := Open(f, meta, storeID, "7.sst", m.cache, m.budget); !errors.Is(err, base.ErrFormatTooNew) {
		t.Errorf("newer format: %v", err)
	}
}

// Bytes that belong to no part are covered by no checksum, so there may be none.
func TestNoGapBehindTheProperties(t *testing.T) {
	f, meta := smallContent().write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	end := int64(len(f.b) - layout.FooterBytes)
	foot, err := layout.DecodeFooter(f.b[end:], block.NewIdentity(fileID, ""), end)
	if err != nil {
		t.Fatal(err)
	}
	b := append(bytes.Clone(f.b[:end]), make([]byte, 16)...)
	b = layout.AppendFooter(b, foot, block.NewIdentity(fileID, ""), end+16)
	meta.Size += 16
	_, err = Open(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget)
	mustBeCorruption(t, "gap", err)
}

func TestNoGapBehindTheBlocks(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID})
	smallContent().addTo(t, w)
	if err := w.seal(); err != nil {
		t.Fatal(err)
	}
	*w.out.Buf = append(*w.out.Buf, make([]byte, 16)...)
	meta, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	m := newRoom(t, 1<<30)
	_, err = Open(&memFile{b: f.b}, meta, storeID, "7.sst", m.cache, m.budget)
	mustBeCorruption(t, "gap", err)
}

func TestFooterThatLies(t *testing.T) {
	f, meta := smallContent().write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	id, end := block.NewIdentity(fileID, ""), int64(len(f.b)-layout.FooterBytes)
	for what, lie := range map[string]func(*layout.Footer){
		"blocks":          func(f *layout.Footer) { f.Blocks++ },
		"no blocks":       func(f *layout.Footer) { f.Blocks = 0 },
		"nothing":         func(f *layout.Footer) { f.Blocks, f.Rows = 0, 0 },
		"rows, no blocks": func(f *layout.Footer) { f.Blocks, f.BlocksBytes, f.TombBytes = 0, 0, f.TombBytes+f.BlocksBytes },
		"fewer blocks":    func(f *layout.Footer) { f.Blocks-- },
		"rows":            func(f *layout.Footer) { f.Rows++ },
		"tombstones":      func(f *layout.Footer) { f.Tombs++ },
		"end of blocks":   func(f *layout.Footer) { f.BlocksBytes--; f.TombBytes++ },
		"no tombstones":   func(f *layout.Footer) { f.IndexBytes += f.TombBytes; f.TombBytes = 0 },
		"no index":        func(f *layout.Footer) { f.PropBytes += f.IndexBytes; f.IndexBytes = 0 },
		"no properties":   func(f *layout.Footer) { f.IndexBytes += f.PropBytes; f.PropBytes = 0 },
		"more than all":   func(f *layout.Footer) { f.BlocksBytes += 1 << 50 },
		"absurd blocks":   func(f *layout.Footer) { f.Blocks = 1 << 60 },
		"absurd tombs":    func(f *layout.Footer) { f.Tombs = 1 << 60 },
		"negative blocks": func(f *layout.Footer) { f.BlocksBytes = -1 },
	} {
		foot, err := layout.DecodeFooter(f.b[end:], id, end)
		if err != nil {
			t.Fatal(err)
		}
		lie(&foot)
		b := layout.AppendFooter(bytes.Clone(f.b[:end]), foot, id, end)
		_, err = Open(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget)
		mustBeCorruption(t, what, err)
		// Opened lazily it may be the first read that tells, but a read does.
		rd, err := OpenLazily(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget)
		if err == nil {
			if rd.Blocks() == 0 {
				t.Errorf("%s: nothing is read to find out", what)
			}
			_, _, err = m.get(rd, "b", everything)
			rd.Close()
		}
		mustBeCorruption(t, what+", opened lazily", err)
	}
}

// Pages of range tombstones and of properties are never compressed: what it takes to open a table is bounded by its size.
func TestCompressedTail(t *testing.T) {
	c := &content{tombs: []tomb{{strings.Repeat("a", 500), strings.Repeat("b", 500), 9}}}
	f, meta := c.write(t, WriterOptions{})
	m := newRoom(t, 1<<30)
	id, end := block.NewIdentity(fileID, ""), int64(len(f.b)-layout.FooterBytes)
	foot, err := layout.DecodeFooter(f.b[end:], id, end)
	if err != nil {
		t.Fatal(err)
	}
	tombs := f.b[foot.TombOff():foot.PropOff()][block.HeaderBytes : foot.TombBytes-4] // the payloads of both pages
	props := f.b[foot.PropOff():end][block.HeaderBytes : foot.PropBytes-4]
	for _, codecs := range [][2]block.Codec{{block.None, block.None}, {block.S2, block.None}, {block.Zstd, block.None}, {block.None, block.S2}} {
		foot, meta, b := foot, meta, bytes.Clone(f.b[:foot.TombOff()])
		b = id.AppendPage(b, block.PageTombstones, int64(len(b)), codecs[0], tombs)
		foot.TombBytes = int64(len(b)) - foot.TombOff()
		b = id.AppendPage(b, block.PageProperties, int64(len(b)), codecs[1], props)
		foot.PropBytes = int64(len(b)) - foot.PropOff()
		b = layout.AppendFooter(b, foot, id, int64(len(b)))
		raw := codecs == [2]block.Codec{}
		if meta.Size = int64(len(b)); raw != bytes.Equal(b, f.b) {
			t.Fatalf("%v: %d bytes, %d when written", codecs, len(b), len(f.b))
		}
		rd, err := Open(&memFile{b: b}, meta, storeID, "7.sst", m.cache, m.budget)
		if !raw {
			mustBeCorruption(t, fmt.Sprint(codecs), err)
		} else if err != nil {
			t.Error(err)
		} else {
			rd.Close()
		}
	}
}

// A size in memory that stands in a file is believed as far as the bytes stored make it
// likely, whatever an int can hold.
func TestBelievable(t *testing.T) {
	for _, c := range []struct {
		heap   int
		stored int64
		want   int
	}{{100, 10, 100}, {1 << 20, 100, 3200}, {65 << 20, 65 << 20, 65 << 20}, {1 << 30, 1 << 30, 1 << 30}} {
		if got := believable(c.heap, c.stored); got != c.want {
			t.Errorf("%d bytes, of which %d are stored: %d", c.heap, c.stored, got)
		}
	}
}

// TestVerifyTellsAll: what is damaged does not hide what else is, nor counts as seen.
func TestVerifyTellsAll(t *testing.T) {
	f, meta := counters(3000, 1).write(t, WriterOptions{BlockBytes: 2000})
	m := newRoom(t, 1<<30)
	whole := m.open(t, f, meta)
	if err := whole.load(); err != nil {
		t.Fatal(err)
	}
	blocks := whole.index.Blocks
	if len(blocks) < 6 {
		t.Fatalf("%d blocks", len(blocks))
	}
	damaged := &memFile{b: bytes.Clone(f.b)}
	places := []int64{blocks[1].Off, blocks[2].Off, blocks[4].ValueOff()}
	for _, off := range places {
		damaged.b[off+20] ^= 1
	}
	r := m.open(t, damaged, meta)
	seen, err := r.Verify(context.Background(), nil)
	if len(seen.Problems) != len(places) || !seen.Whole || seen.Bytes != meta.Size {
		t.Fatalf("%+v, %v", seen, err)
	}
	for i, problem := range seen.Problems {
		var c *base.CorruptionError
		if !errors.As(problem, &c) || c.Offset != places[i] {
			t.Errorf("problem %d: %v, want it at %d", i, problem, places[i])
		}
	}
	if want := meta.Entries - uint64(blocks[1].Rows) - uint64(blocks[2].Rows); seen.Entries != want {
		t.Errorf("%d rows seen, want %d", seen.Entries, want)
	}
	damaged.b[len(damaged.b)-1] ^= 1
	seen, err = r.Verify(context.Background(), nil)
	if len(seen.Problems) != 1 || seen.Whole || seen.Bytes != 0 || seen.Entries != 0 || err == nil {
		t.Errorf("without its end: %+v, %v", seen, err)
	}
}

// Files whose checksums are right and whose contents lie: only Verify, which
// looks at everything, can and must tell.
func TestVerifySeesLies(t *testing.T) {
	m := newRoom(t, 1<<30)
	for what, lie := range map[string]func(w *Writer){
		"deletes":          func(w *Writer) { w.meta.Deletes++ },
		"raw bytes":        func(w *Writer) { w.meta.RawBytes++ },
		"least sequence":   func(w *Writer) { w.meta.MinSeq = 0 },
		"highest sequence": func(w *Writer) { w.meta.MaxSeq += 9 },
		"smallest":         func(w *Writer) { w.meta.Smallest = []byte("counter0") },
		"largest":          func(w *Writer) { w.last = append(w.last, 'x') },
	} {
		c := counters(400, 10)
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID, BlockBytes: 1024})
		c.addTo(t, w)
		if err := w.seal(); err != nil {
			t.Fatal(err)
		}
		lie(w)
		meta, err := w.Finish()
		if err != nil {
			t.Fatal(what, err)
		}
		f.closed = false
		rd, err := Open(f, meta, storeID, "7.sst", m.cache, m.budget)
		if err == nil {
			err = second(rd.Verify(context.Background(), nil))
			rd.Close()
		}
		mustBeCorruption(t, what, err)
	}
}

// changeEntry rewrites the index with one entry changed.
func changeEntry(t *testing.T, w *Writer, n int, change func(*layout.Entry)) {
	t.Helper()
	var made layout.IndexWriter
	i := 0
	for _, raw := range w.index.Pages {
		err := layout.DecodeEntries(raw, func(entry *layout.Entry) error {
			e := *entry
			if i == n {
				change(&e)
			}
			made.Add(&e)
			i++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.index = made
}

func TestReadErrorsReachTheCaller(t *testing.T) {
	c := counters(300, 20)
	f, meta := c.write(t, WriterOptions{Codec: block.S2, BlockBytes: 1024})
	m := newRoom(t, 1<<30)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that nobody reads ahead, and meets an error for nobody
	for how, open := range openers {
		t.Run(how, func(t *testing.T) { readErrorsReachTheCaller(t, m, c, f, meta, open) })
	}
}

func readErrorsReachTheCaller(t *testing.T, m *room, c *content, f *memFile, meta base.TableMeta, open opener) {
	for n := 1; ; n++ {
		file := &memFile{b: f.b, failAt: n}
		errs := attempt(t, m, c, file, meta, open)
		if len(errs) == 0 {
			if n < 20 {
				t.Fatalf("only %d reads", n)
			}
			return
		}
		for _, err := range errs {
			if !errors.Is(err, errDisk) {
				t.Fatalf("read %d failed: error %v", n, err)
			}
		}
		if len(errs) != 1 {
			t.Fatalf("read %d failed once, %d calls did", n, len(errs))
		}
	}
}

// attempt does one of each, and returns the errors.
func attempt(t *testing.T, m *room, c *content, f *memFile, meta base.TableMeta, open opener) (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	rd, err := open(f, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		return []error{err}
	}
	defer rd.Close()
	note(second(rd.Verify(context.Background(), nil)))
	x, err := rd.BuildIndex(context.Background())
	if note(err); err == nil {
		rd.AttachIndex(x)
	}
	it := rd.NewIter(m.slot, IterOptions{})
	defer it.Close()
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		n++
		if _, err := it.Value(); err != nil && (it.Valid() || it.Err() == nil) {
			t.Fatal("iterator stays valid after an error of Value")
		}
	}
	if note(it.Err()); it.Err() == nil && n != len(c.rows) {
		t.Fatalf("scan ended after %d rows without an error", n)
	}
	for _, w := range c.rows {
		got, ok, err := m.get(rd, w.key, everything)
		if note(err); err == nil && (!ok || got != w) {
			t.Fatalf("get %q: %v %v", w.key, got, ok)
		}
	}
	return errs
}

func TestShortReadsAndWrites(t *testing.T) {
	c := smallContent()
	f := &memFile{stingy: true}
	w := NewWriter(f, WriterOptions{Num: 7, File: fileID, Store: storeID})
	c.addTo(t, w)
	meta, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := c.write(t, WriterOptions{}); !bytes.Equal(f.b, want.b) {
		t.Fatal("short writes made another file")
	}
	m := newRoom(t, 1<<30)
	c.gets(t, m, m.open(t, &memFile{b: f.b, stingy: true}, meta), rand.New(rand.NewPCG(1, 1)))
}
