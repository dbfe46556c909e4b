package table

import (
	"bytes"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/vfs"
)

// Open opens a table for reading: it reads and verifies everything but the
// blocks, and that the file is the one meta describes. On success the Reader
// owns f. name is what errors call the file; meta's GlobalSeq, if there is one,
// holds for the life of the Reader.
func Open(f vfs.File, meta base.TableMeta, store base.ID, name string, c *cache.Cache, b *arena.Budget) (*Reader, error) {
	r, err := OpenLazily(f, meta, store, name, c, b)
	if err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		b.Add(arena.ClassMeta, -r.metaBytes)
		return nil, err
	}
	return r, nil
}

// OpenLazily is Open that leaves the index of blocks to the first call that needs it: to
// open a store must not take longer the more blocks it has. What is wrong with the index
// that call says, and the next one looks again.
func OpenLazily(f vfs.File, meta base.TableMeta, store base.ID, name string, c *cache.Cache, b *arena.Budget) (*Reader, error) {
	r := &Reader{
		src:    source{f, name},
		name:   name,
		id:     block.NewIdentity(meta.File, name),
		meta:   meta,
		store:  store,
		cache:  c,
		budget: b,
	}
	t, err := r.readTail(false)
	if err != nil {
		return nil, err
	}
	r.footer = t.footer
	r.tombs = tombstone.Build(t.tombs)
	r.boundBytes = t.tombBytes + int64(len(meta.Smallest)+len(meta.Largest))
	r.countMeta()
	return r, nil
}

// load reads the index of blocks, unless that has been done.
func (r *Reader) load() error {
	if r.loaded.Load() {
		return nil
	}
	r.loading.Lock()
	defer r.loading.Unlock()
	if r.loaded.Load() {
		return nil
	}
	w, done := r.window(r.footer.End() + layout.FooterBytes)
	defer done()
	index, err := r.readIndex(w, &r.footer)
	if err != nil {
		return err
	}
	r.index, r.slots = index, make([]cache.Slot, 2*len(index.Blocks))
	r.countMeta()
	r.loaded.Store(true)
	if r.budget.Used() > r.budget.Limit() {
		r.cache.Room(0)
	}
	return nil
}

// slotBytes is what a cache.Slot takes.
const slotBytes = 16

// countMeta counts to the budget what the Reader holds beside pages and the point
// index: the block index, the tombstones, and bounds, those of the table included.
func (r *Reader) countMeta() {
	n := r.tombs.Memory() + r.boundBytes
	if r.index != nil {
		n += r.index.Bytes() + int64(len(r.slots))*slotBytes
	}
	r.budget.Add(arena.ClassMeta, n-r.metaBytes)
	r.metaBytes = n
}

// Resequence changes the global sequence that the table was opened with. Nobody may
// have read from it yet.
func (r *Reader) Resequence(seq uint64) {
	r.meta.GlobalSeq, r.meta.MinSeq, r.meta.MaxSeq = seq, seq, seq
	tombs := r.tombs.Spans()
	for i := range tombs {
		tombs[i].Seq = seq
	}
	r.tombs = tombstone.Build(tombs)
	r.countMeta()
}

// tail is what stands around the blocks.
type tail struct {
	footer layout.Footer
	index  *layout.Index // nil if it was left out
	tombs  []tombstone.Tombstone
	props  base.TableMeta

	tombBytes int64 // of the raw pages that the bounds in tombs lie in
}

// readTail reads and verifies all of the file but the blocks, and the index of these if it
// is left out.
func (r *Reader) readTail(withIndex bool) (*tail, error) {
	size, err := r.src.f.Size()
	if err != nil {
		return nil, err
	}
	if size != r.meta.Size || size < layout.MinFileBytes {
		return nil, base.Corruptf(r.name, size, "file has %d bytes, the manifest says %d", size, r.meta.Size)
	}
	w, done := r.window(size)
	defer done()
	if err := w.read(max(0, size-tailBytes), int(min(size, tailBytes))); err != nil {
		return nil, err
	}
	if err := r.checkHeader(w); err != nil {
		return nil, err
	}
	b, err := w.at(size-layout.FooterBytes, layout.FooterBytes)
	if err != nil {
		return nil, err
	}
	t := &tail{}
	if t.footer, err = layout.DecodeFooter(b, r.id, size-layout.FooterBytes); err != nil {
		return nil, err
	}
	if err := r.readTombstones(w, t); err != nil {
		return nil, err
	}
	if withIndex {
		if t.index, err = r.readIndex(w, &t.footer); err != nil {
			return nil, err
		}
	}
	if err := r.readProperties(w, t); err != nil {
		return nil, err
	}
	return t, nil
}

func (r *Reader) checkHeader(w *window) error {
	b := make([]byte, base.FileHeaderBytes)
	if err := w.copy(b, 0); err != nil {
		return err
	}
	h, err := base.DecodeFileHeader(b, base.FileTable, r.name)
	if err != nil {
		return err
	}
	if h.File != r.meta.File || h.Store != r.store || h.Num != r.meta.Num {
		return base.Corruptf(r.name, 0, "this is file %x, number %d, of store %x, not %x, %d, %x",
			h.File, h.Num, h.Store, r.meta.File, r.meta.Num, r.store)
	}
	return nil
}

// eachPage calls fn for the pages of type t in [off, end): where the page stands
// and its raw bytes, which are fn's to keep.
func (r *Reader) eachPage(w *window, t block.PageType, off, end int64, fn func(off int64, raw []byte) error) error {
	for off < end {
		if end-off < block.OverheadBytes {
			return base.Corruptf(r.name, off, "%d bytes are too few for a page", end-off)
		}
		head, err := w.at(off, block.HeaderBytes)
		if err != nil {
			return err
		}
		size := block.SizeFromHeader(head)
		if int64(size) > end-off || size > block.MaxStoredBytes {
			return base.Corruptf(r.name, off, "page of %d bytes where there is room for %d", size, end-off)
		}
		b, err := w.at(off, size)
		if err != nil {
			return err
		}
		p, err := r.id.ParsePage(b, t, off)
		if err != nil {
			return err
		}
		if t != block.PageIndex && p.Codec != block.None { // else a small file could take any amount of memory to open
			return base.Corruptf(r.name, off, "page of type %d is compressed", t)
		}
		raw := make([]byte, p.RawBytes)
		if err := p.Decompress(raw); err != nil {
			return err
		}
		if err := fn(off, raw); err != nil {
			return err
		}
		off += int64(size)
	}
	return nil
}

func (r *Reader) readTombstones(w *window, t *tail) error {
	err := r.eachPage(w, block.PageTombstones, t.footer.TombOff(), t.footer.IndexOff(), func(off int64, raw []byte) (err error) {
		t.tombBytes += int64(len(raw))
		if t.tombs, err = layout.DecodeTombstones(t.tombs, raw); err != nil {
			return base.Corruptf(r.name, off, "%v", err)
		}
		return nil
	})
	if err == nil && uint64(len(t.tombs)) != t.footer.Tombs {
		err = base.Corruptf(r.name, t.footer.TombOff(), "%d range tombstones, the footer says %d", len(t.tombs), t.footer.Tombs)
	}
	for i := range t.tombs {
		t.tombs[i].Seq = r.seq(t.tombs[i].Seq)
	}
	return err
}

func (r *Reader) readIndex(w *window, f *layout.Footer) (*layout.Index, error) {
	index := layout.NewIndex(int(f.Blocks))
	err := r.eachPage(w, block.PageIndex, f.IndexOff(), f.PropOff(), func(off int64, raw []byte) error {
		if err := index.AddPage(raw, f.TombOff()); err != nil {
			return base.Corruptf(r.name, off, "%v", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := index.Finish(f); err != nil {
		return nil, base.Corruptf(r.name, f.IndexOff(), "%v", err)
	}
	return index, nil
}

func (r *Reader) readProperties(w *window, t *tail) error {
	pages, off := 0, t.footer.PropOff()
	err := r.eachPage(w, block.PageProperties, off, t.footer.End(), func(_ int64, raw []byte) (err error) {
		pages++
		if t.props, err = layout.DecodeProperties(raw); err != nil {
			return base.Corruptf(r.name, off, "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if pages != 1 {
		return base.Corruptf(r.name, off, "%d properties pages", pages)
	}
	if t.props.Entries != t.footer.Rows || t.props.RangeDeletes != t.footer.Tombs {
		return base.Corruptf(r.name, off, "properties and footer count differently")
	}
	if what := layout.Contradiction(&r.meta, &t.props); what != "" {
		return base.Corruptf(r.name, off, "the manifest says otherwise of the table's %s", what)
	}
	return r.checkEmptiness(t)
}

// checkEmptiness refuses what no writer makes: a table of nothing, bounds the
// wrong way round.
func (r *Reader) checkEmptiness(t *tail) error {
	p := &t.props
	if p.Entries == 0 && p.RangeDeletes == 0 || bytes.Compare(p.Smallest, p.Largest) > 0 || p.Deletes > p.Entries || p.RawBytes < 0 {
		return base.Corruptf(r.name, t.footer.PropOff(), "properties contradict themselves")
	}
	return nil
}

// tailBytes is how much of a file's end is read first: of most tables all that stands
// behind the blocks. What more there is comes in pieces of windowBytes.
const (
	tailBytes   = 8 << 10
	windowBytes = 64 << 10
)

// window reads a file's tail with few calls: small pieces come from one larger read.
type window struct {
	src  source
	size int64
	buf  []byte
	off  int64
}

// window returns an empty window of the file, whose size is given; done ends its use.
func (r *Reader) window(size int64) (w *window, done func()) {
	s := scratches.Get().(*scratch)
	w = &window{src: r.src, size: size, buf: s.stored[:0]}
	return w, func() {
		s.stored = w.buf
		scratches.Put(s)
	}
}

// holds reports whether n bytes at off have been read.
func (w *window) holds(off int64, n int) bool {
	return off >= w.off && off+int64(n) <= w.off+int64(len(w.buf))
}

// read makes the window n bytes at off, which lie in the file.
func (w *window) read(off int64, n int) error {
	w.buf, w.off = resize(w.buf, n), off
	err := w.src.readAt(w.buf, off)
	if err != nil {
		w.buf = w.buf[:0]
	}
	return err
}

// at returns n bytes at off, valid until the next call. They lie in the file.
func (w *window) at(off int64, n int) ([]byte, error) {
	if !w.holds(off, n) {
		if err := w.read(off, int(min(w.size-off, int64(max(n, windowBytes))))); err != nil {
			return nil, err
		}
	}
	return w.buf[off-w.off:][:n:n], nil
}

// copy fills dst from off, and leaves the window where it is.
func (w *window) copy(dst []byte, off int64) error {
	if !w.holds(off, len(dst)) {
		return w.src.readAt(dst, off)
	}
	copy(dst, w.buf[off-w.off:])
	return nil
}
