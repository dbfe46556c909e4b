package table

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/recycle"
)

// The example of docs/format/table.md is what this code writes.
func TestWorkedExample(t *testing.T) {
	c := &content{
		rows:  []row{{"app", 9, base.KindPut, "one"}, {"app", 4, base.KindDelete, ""}, {"apple", 5, base.KindPut, "two"}},
		tombs: []tomb{{"b", "c", 7}},
	}
	f, _ := c.write(t, WriterOptions{})
	doc, err := os.ReadFile("../../docs/format/table.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```hex\n")
	example, _, _ := strings.Cut(rest, "```")
	var want []byte
	for _, line := range strings.Split(strings.TrimSpace(example), "\n") {
		digits, _, _ := strings.Cut(line, "|")
		b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		want = append(want, b...)
	}
	if !bytes.Equal(f.b, want) {
		t.Fatalf("the writer makes\n%x\nthe document says\n%x", f.b, want)
	}
}

func TestMisuseIsAnErrorThatSticks(t *testing.T) {
	long := make([]byte, base.MaxKeyBytes+1)
	for what, misuse := range map[string]func(w *Writer) error{
		"smaller key":   func(w *Writer) error { return w.Add([]byte("a"), 5, base.KindPut, nil) },
		"same row":      func(w *Writer) error { return w.Add([]byte("m"), 5, base.KindPut, nil) },
		"newer version": func(w *Writer) error { return w.Add([]byte("m"), 6, base.KindPut, nil) },
		"long key": func(w *Writer) error {
			return w.Add(bytes.Repeat([]byte("z"), base.MaxKeyBytes+1), 5, base.KindPut, nil)
		},
		"private sequence": func(w *Writer) error { return w.Add([]byte("z"), base.SeqPrivate, base.KindPut, nil) },
		"range delete row": func(w *Writer) error { return w.Add([]byte("z"), 5, base.KindRangeDelete, nil) },
		"delete of value":  func(w *Writer) error { return w.Add([]byte("z"), 5, base.KindDelete, []byte("v")) },
		"empty range":      func(w *Writer) error { return w.AddRangeDelete([]byte("a"), []byte("a"), 5) },
		"private range":    func(w *Writer) error { return w.AddRangeDelete([]byte("a"), []byte("b"), base.SeqPrivate) },
		"long range":       func(w *Writer) error { return w.AddRangeDelete(nil, long, 5) },
	} {
		f := &memFile{}
		w := NewWriter(f, WriterOptions{})
		if err := w.Add([]byte("m"), 5, base.KindPut, nil); err != nil {
			t.Fatal(err)
		}
		if err := misuse(w); !errors.Is(err, ErrOrder) && !errors.Is(err, ErrInvalidRow) {
			t.Errorf("%s: error %v", what, err)
		}
		if w.Add([]byte("zz"), 1, base.KindPut, nil) == nil || w.AddRangeDelete([]byte("a"), []byte("b"), 1) == nil {
			t.Errorf("%s: the error does not stick", what)
		}
		if _, err := w.Finish(); err == nil || f.syncs != 0 || !f.closed {
			t.Errorf("%s: finished with error %v, %d syncs, closed %v", what, err, f.syncs, f.closed)
		}
	}
}

func TestEmptyFinishAndAbandon(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{})
	if _, err := w.Finish(); !errors.Is(err, ErrEmpty) || f.syncs != 0 || !f.closed {
		t.Errorf("error %v, %d syncs, closed %v", err, f.syncs, f.closed)
	}
	f = &memFile{}
	w = NewWriter(f, WriterOptions{})
	w.Add([]byte("a"), 1, base.KindPut, nil)
	if err := w.Abandon(); err != nil || !f.closed || f.syncs != 0 || w.Abandon() != nil {
		t.Errorf("error %v, closed %v", err, f.closed)
	}
	if w.Add([]byte("b"), 1, base.KindPut, nil) == nil {
		t.Error("an abandoned writer takes rows")
	}
	if _, err := w.Finish(); err == nil {
		t.Error("an abandoned writer finishes")
	}
}

// TestWriteOut: the file is whole before it is synced, what was added is not read any more, and nothing can be added.
func TestWriteOut(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{})
	value := bytes.Repeat([]byte("value"), 100)
	for i := range 1000 {
		if err := w.Add(fmt.Appendf(nil, "%06d", i), 1, base.KindPut, value); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := w.WriteOut(); err != nil || f.syncs != 0 || f.closed {
			t.Fatalf("error %v, %d syncs, closed %v", err, f.syncs, f.closed)
		}
	}
	whole := bytes.Clone(f.b)
	clear(value)
	if w.Add([]byte("zz"), 1, base.KindPut, nil) == nil || w.AddRangeDelete([]byte("a"), []byte("b"), 1) == nil {
		t.Error("a table that is written out takes more")
	}
	meta, err := w.Finish()
	if err != nil || f.syncs != 1 || !f.closed || meta.Size != int64(len(whole)) || !bytes.Equal(f.b, whole) {
		t.Errorf("error %v, %d syncs, closed %v, %d bytes of %d, as before: %v", err, f.syncs, f.closed, meta.Size, len(whole), bytes.Equal(f.b, whole))
	}
}

// Every write and the sync fail in turn: no failure may be lost.
func TestWriteAndSyncErrors(t *testing.T) {
	c := counters(3000, 400)
	for n := 1; ; n++ {
		f := &memFile{failAt: n}
		w := NewWriter(f, WriterOptions{})
		var err error
		for _, r := range c.rows {
			if err = w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)); err != nil {
				break
			}
		}
		_, finishErr := w.Finish()
		if f.failAt > 0 {
			if n < 5 || err != nil || finishErr != nil {
				t.Fatalf("%d operations, errors %v, %v", n-1, err, finishErr)
			}
			return
		}
		if !errors.Is(finishErr, errDisk) || err != nil && !errors.Is(err, errDisk) || !f.closed {
			t.Fatalf("operation %d failed: errors %v, %v", n, err, finishErr)
		}
	}
}

func TestEstimatedBytes(t *testing.T) {
	for _, codec := range codecs {
		c := counters(20000, 60)
		f := &memFile{}
		w := NewWriter(f, WriterOptions{Codec: codec})
		for i, r := range c.rows {
			w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val))
			if i%4000 == 3999 {
				before := w.EstimatedBytes()
				part, _ := (&content{rows: c.rows[:i+1]}).write(t, WriterOptions{Codec: codec})
				if d := math.Abs(float64(before)-float64(len(part.b))) / float64(len(part.b)); d > 0.15 && before-int64(len(part.b)) > 4096 {
					t.Errorf("%v: estimate %d, file %d", codec, before, len(part.b))
				}
			}
		}
		meta, err := w.Finish()
		if err != nil || w.EstimatedBytes() != meta.Size {
			t.Errorf("estimate %d of a finished file of %d bytes, error %v", w.EstimatedBytes(), meta.Size, err)
		}
	}
}

// Fences are bounded: a caller that splits when told never meets the bound, one
// that does not gets an error and no unreadable table.
func TestIndexFillsUp(t *testing.T) {
	f := &memFile{}
	w := NewWriter(f, WriterOptions{Codec: block.Zstd, BlockBytes: minBlockTarget})
	key := bytes.Repeat([]byte("k"), base.MaxKeyBytes)
	told := false
	for i := 0; ; i++ {
		copy(key[base.MaxKeyBytes-8:], fmt.Sprintf("%08d", i))
		err := w.Add(key, 1, base.KindPut, nil)
		if told = told || w.EstimatedBytes() == math.MaxInt64; err != nil {
			if !errors.Is(err, ErrFull) || !told || i < 200 {
				t.Fatalf("row %d: error %v, told before: %v", i, err, told)
			}
			break
		}
	}
	if _, err := w.Finish(); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
}

// TestVersionsOfALongKeyShareFences: behind as many fences as a table may have before another begins, there is room for
// a thousand versions of one key and more, however long.
func TestVersionsOfALongKeyShareFences(t *testing.T) {
	for _, c := range []struct{ key, value, versions int }{
		{base.MaxKeyBytes, 0, 1800}, {base.MaxKeyBytes, 64 << 10, 1000}, {16 << 10, 64 << 10, 1600}, {base.MaxKeyBytes, 1<<20 + 1, 120},
	} {
		t.Run(fmt.Sprintf("key of %d, values of %d", c.key, c.value), func(t *testing.T) {
			w := NewWriter(&memFile{}, WriterOptions{Codec: block.S2})
			key, value := bytes.Repeat([]byte("k"), c.key), bytes.Repeat([]byte("v"), c.value)
			for i := 0; w.EstimatedBytes() != math.MaxInt64; i++ {
				copy(key[c.key-8:], fmt.Sprintf("%08d", i))
				if err := w.Add(key, 1, base.KindPut, value[:min(c.value, 1)]); err != nil {
					t.Fatal(err)
				}
			}
			copy(key[c.key-8:], "versions")
			for i := range c.versions {
				if err := w.Add(key, uint64(c.versions-i), base.KindPut, value); err != nil {
					t.Fatalf("version %d: %v", i, err)
				}
			}
			if _, err := w.Finish(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBlocksOfVersionsAreRead: blocks that are larger for the versions in them are read as others are, both ways.
func TestBlocksOfVersionsAreRead(t *testing.T) {
	for _, codec := range codecs {
		c := &content{}
		long, value := strings.Repeat("k", base.MaxKeyBytes-1), strings.Repeat("v", 100<<10)
		for i := range uint64(40) {
			c.rows = append(c.rows, row{long + "b", i + 1, base.KindPut, fmt.Sprint(i)}, row{"short", i + 1, base.KindPut, value[:1000*i]},
				row{long[:20<<10] + "c", i + 1, base.KindPut, value[i:]}, row{long + "e", 9, base.KindDelete, ""})
		}
		c.rows[4*20].val = strings.Repeat("j", block.MaxPageBytes+1) // has a block of its own, among versions
		c.rows = append(c.rows, row{"a", 1, base.KindPut, "1"}, row{long + "a", 1, base.KindPut, "2"}, row{long + "d", 1, base.KindPut, "3"}, row{"z", 1, base.KindPut, "4"})
		c.sort()
		f, meta := c.write(t, WriterOptions{Codec: codec})
		c.checkMeta(t, meta, f)
		m := newRoom(t, 64<<20)
		rd := m.open(t, f, meta)
		if n := rd.Blocks(); n > 60 {
			t.Errorf("%d blocks", n)
		}
		r := rand.New(rand.NewPCG(1, 1))
		c.gets(t, m, rd, r)
		for _, noCache := range []bool{false, true} {
			it := rd.NewIter(m.slot, IterOptions{NoCache: noCache})
			c.scan(t, it)
			c.walk(t, it, r, 300)
			it.Close()
		}
		if _, err := rd.Verify(context.Background(), nil); err != nil {
			t.Error(err)
		}
	}
}

// Memory of a writer does not grow with the table.
func TestWriterBuffersAreBounded(t *testing.T) {
	sealedBlocks, gatherings = recycle.Pool[sealedBlock]{}, recycle.Pool[gathered]{} // larger ones of other tests
	f := &memFile{}
	w := NewWriter(f, WriterOptions{})
	for i := range 400 {
		w.Add(fmt.Appendf(nil, "%06d", i), 1, base.KindPut, make([]byte, 40<<10))
		n := cap(*w.out.Buf) + cap(w.values) + cap(w.encoded)
		for _, s := range append(w.pipeline.under, sealedBlocks.Get()) {
			n += cap(s.keys) + cap(s.own) + cap(s.pages)
			s.recycle()
		}
		if n > 2<<20 {
			t.Fatalf("buffers of %d bytes after %d rows", n, i)
		}
	}
	w.Abandon()
}

// 50,000 pairs of a 9-byte prefix and a counter with a value of one byte: what
// the smallest rival needs 345 KB for.
func TestSmallPairsCostNextToNothing(t *testing.T) {
	for name, format := range map[string]string{"decimal": "\u5b59\u609f\u7a7a%d", "padded": "\u5b59\u609f\u7a7a%06d"} {
		c := &content{}
		for i := range 50000 {
			c.rows = append(c.rows, row{fmt.Sprintf(format, i), uint64(i) + 1, base.KindPut, "d"})
		}
		c.sort()
		f, meta := c.write(t, WriterOptions{Codec: block.Zstd})
		s2, _ := c.write(t, WriterOptions{Codec: block.S2})
		for i := range c.rows {
			c.rows[i].seq = 0
		}
		bottom, _ := c.write(t, WriterOptions{Codec: block.Zstd})
		t.Logf("%s: %d raw bytes: zstd %d, without sequences %d, s2 %d", name, meta.RawBytes, len(f.b), len(bottom.b), len(s2.b))
		if len(f.b) > 40000 || len(bottom.b) > 15000 {
			t.Errorf("%s: %d and %d bytes", name, len(f.b), len(bottom.b))
		}
	}
}

// starter notes what the device was asked to begin with.
type starter struct {
	*memFile
	until int64
	calls int
	t     *testing.T
}

func (s *starter) StartWriteback(off, n int64) {
	if off != s.until || n < 1<<20 || off+n > int64(len(s.b)) || s.syncs > 0 {
		s.t.Errorf("%d bytes at %d after %d, of %d written, %d syncs", n, off, s.until, len(s.b), s.syncs)
	}
	s.until, s.calls = off+n, s.calls+1
}

// A long table is given to the device in pieces while it is written.
func TestWriterStartsWritebackEarly(t *testing.T) {
	c := counters(5000, 1000)
	s := &starter{memFile: &memFile{}, t: t}
	w := NewWriter(s, WriterOptions{Codec: block.None})
	for _, r := range c.rows {
		if err := w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if size := int64(len(s.b)); s.calls < 4 || size-s.until > 1<<20+144<<10 {
		t.Errorf("%d calls, up to %d of %d bytes", s.calls, s.until, size)
	}
}
