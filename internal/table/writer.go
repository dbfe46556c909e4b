package table

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/outfile"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/tombstone"
	"github.com/cairndb/cairn/vfs"
)

const (
	// DefaultBlockBytes is the raw size, keys and values together, at which a block is ended.
	DefaultBlockBytes = 64 << 10
	minBlockTarget    = 512
	maxBlockTarget    = 256 << 10

	// versionsKeys is how many times as large as its key a block of versions of one key is to be: each such block has
	// the whole key as its fence, and fences of a table are bounded.
	versionsKeys = 16
)

// Errors of a Writer that was used wrongly. They stick: the table cannot be finished.
var (
	// ErrOrder is returned by Add for a row that does not come after the one before.
	ErrOrder = errors.New("table: rows are not in order of key, then descending sequence")
	// ErrInvalidRow is returned for keys, sequences, kinds and values a table cannot hold.
	ErrInvalidRow = errors.New("table: row is outside the limits")
	// ErrEmpty is returned by Finish if nothing was added.
	ErrEmpty = errors.New("table: nothing to write")
	// ErrFull is returned by Add when the fences of the index reached their
	// limit; EstimatedBytes asks for a new table long before. It is a base.ErrLimit.
	ErrFull = fmt.Errorf("%w: too many versions of a long key are kept for open snapshots", base.ErrLimit)

	errFinished = errors.New("table: writer is finished")
	errWritten  = errors.New("table: all of it is written")
)

// WriterOptions says what table to write. The zero value of a field is its default.
type WriterOptions struct {
	Name       string      // of the file, in errors
	Num        uint64      // file number, for the header
	File       base.ID     // identity of the file; default a new one
	Store      base.ID     // identity of the store
	Codec      block.Codec // of key, value and index pages that shrink by it
	Also       block.Codec // if not None, blocks that are compressed with it are taken as they are stored, too
	BlockBytes int         // see DefaultBlockBytes; at most 256 KiB
	Helpers    int         // goroutines that compress beside the caller's; 0: none, the caller's does
	GivesWay   func() bool // while it returns true the writer takes only processors that nobody else wants; nil: never
	PointIndex *pointindex.Builder

	// Resident, if not nil, gets the pages decoded, as far as there is room: see TakePages.
	Resident *cache.Cache
}

// Writer writes one table from front to back, in memory that does not grow with
// the table but for its index (some 30 bytes a block) and range tombstones.
// For one goroutine.
type Writer struct {
	out   outfile.File
	opts  WriterOptions
	id    block.Identity
	index layout.IndexWriter
	meta  base.TableMeta
	err   error // sticky

	*gathered
	goesOn bool // the first key of the block being gathered is the last of the block before

	pipeline pipeline      // of blocks that are not in the file yet
	pages    []*cache.Page // decoded, in the order of a Reader's slots; nil where there was no room

	lastSeq   uint64
	partSeqs  []uint64 // of each partBlocks blocks the greatest
	tombs     []tombstone.Tombstone
	tombBytes int64
	rawBlocks int64 // bytes that went into the blocks in the file

	estimated   int64 // see estimate
	shrinks     float64
	estimatedAt int // when that was: how many blocks and tombstones there were, plus one

	nextSmall int // from so many blocks on there may be a small one again, before one that is added as it is stored
}

// NewWriter returns a writer of a table to the new, empty file f, which it owns:
// Finish and Abandon close it.
func NewWriter(f vfs.File, opts WriterOptions) *Writer {
	if opts.File == (base.ID{}) {
		opts.File = base.NewID()
	}
	if opts.BlockBytes == 0 {
		opts.BlockBytes = DefaultBlockBytes
	}
	opts.BlockBytes = min(max(opts.BlockBytes, minBlockTarget), maxBlockTarget)
	w := &Writer{gathered: gatherings.Get(), out: outfile.New(f, opts.Name), opts: opts, id: block.NewIdentity(opts.File, opts.Name)}
	w.pipeline = pipeline{codec: opts.Codec, helpers: opts.Helpers, givesWay: opts.GivesWay, resident: opts.Resident}
	w.meta = base.TableMeta{Num: opts.Num, File: opts.File, MinSeq: math.MaxUint64}
	*w.out.Buf = base.AppendFileHeader(*w.out.Buf, base.FileHeader{Type: base.FileTable,
		Version: base.FormatVersion, File: opts.File, Store: opts.Store, Num: opts.Num})
	return w
}

// Add adds a row. Rows come in order of key ascending, sequence descending, none
// twice; kind is put or delete, and a delete has no value. key and value are copied.
func (w *Writer) Add(key []byte, seq uint64, kind base.Kind, value []byte) error {
	if w.err != nil {
		return w.err
	}
	newKey, err := w.check(key, seq, kind, value)
	target := w.opts.BlockBytes
	if !newKey {
		target = max(target, versionsKeys*len(key))
	}
	if err == nil && !w.fits(len(key), len(value), target) {
		err = w.seal()
	}
	if err != nil {
		w.err = err
		return err
	}
	if w.keys.Rows() == 0 {
		w.begin(key, newKey)
	}
	if newKey && w.opts.PointIndex != nil {
		w.opts.PointIndex.Add(base.Hash(key), pointindex.MakeLoc(uint32(w.pipeline.blocks), uint16(w.keys.Rows())))
	}
	w.keys.Add(key, seq, kind, len(value))
	w.count(key, seq, kind, value)
	if len(value) > block.MaxPageBytes {
		w.err = w.sealJumbo(value)
		return w.err
	}
	w.addValue(value, w.opts.BlockBytes)
	if w.raw() >= target {
		w.err = w.seal()
	}
	return w.err
}

// check reports whether the key differs from that of the row before.
func (w *Writer) check(key []byte, seq uint64, kind base.Kind, value []byte) (newKey bool, err error) {
	if len(key) > base.MaxKeyBytes || len(value) > base.MaxValueBytes || seq > base.MaxSeq ||
		kind > base.KindPut || kind == base.KindDelete && len(value) > 0 {
		return false, fmt.Errorf("%w: key of %d bytes, value of %d, sequence %d, %v", ErrInvalidRow, len(key), len(value), seq, kind)
	}
	c := -1
	if w.meta.Entries > 0 {
		c = bytes.Compare(w.last, key)
	}
	if c > 0 || c == 0 && seq >= w.lastSeq {
		return false, fmt.Errorf("%w: key %q, sequence %d", ErrOrder, key, seq)
	}
	return c != 0, nil
}

// raw returns the size of the gathered rows; each counts a little, lest blocks
// of empty rows become huge.
func (w *Writer) raw() int { return w.keys.KeyBytes() + len(w.values) + w.keys.Rows() }

// fits reports whether a row may go into the block being gathered, which is to have target bytes.
func (w *Writer) fits(key, value, target int) bool {
	rows := w.keys.Rows()
	if rows == 0 {
		return true
	}
	return rows < block.MaxRows && w.raw()+key+value <= 2*target &&
		w.keys.FormBound(key) <= block.MaxPageBytes && len(w.values)+value <= block.MaxPageBytes
}

// begin starts a block whose first key is key.
func (w *Writer) begin(key []byte, newKey bool) {
	w.goesOn = !newKey
	w.fence = w.fence[:0]
	if w.pipeline.blocks > 0 {
		n := len(key)
		if newKey {
			n = block.CommonPrefix(w.last, key) + 1
		}
		w.fence = append(w.fence, key[:n]...)
	}
}

func (w *Writer) count(key []byte, seq uint64, kind base.Kind, value []byte) {
	m := &w.meta
	if m.Entries == 0 {
		m.Smallest = bytes.Clone(key)
		if m.Smallest == nil {
			m.Smallest = []byte{}
		}
	}
	m.Entries++
	if kind == base.KindDelete {
		m.Deletes++
	}
	m.RawBytes += int64(len(key) + len(value))
	m.MinSeq, m.MaxSeq = min(m.MinSeq, seq), max(m.MaxSeq, seq)
	part := w.pipeline.blocks / partBlocks
	if part == len(w.partSeqs) {
		w.partSeqs = append(w.partSeqs, 0)
	}
	w.partSeqs[part] = max(w.partSeqs[part], seq)
	w.last, w.lastSeq = append(w.last[:0], key...), seq
}

// smallEvery: rows between blocks that are added as they are stored become a small block of their own once in so many.
const smallEvery = 8

// TakesBlock reports whether a block of so many bytes, compressed with c, may be added as it is stored, lest there be
// small ones, or larger ones than wanted.
func (w *Writer) TakesBlock(raw int, c block.Codec) bool {
	least := w.opts.BlockBytes / 2
	return w.takes(c) && raw >= least && raw <= 2*w.opts.BlockBytes &&
		(w.keys.Rows() == 0 || w.raw() >= least || w.pipeline.blocks >= w.nextSmall)
}

// takes reports whether what is compressed with c may stay so. What is not compressed yet AddBlock tries to.
func (w *Writer) takes(c block.Codec) bool {
	return c == block.None || c == w.opts.Codec || c == w.opts.Also
}

// AddBlock adds the rows of a block, which are puts without a sequence, as they are stored. It returns false, and nothing
// has changed, if they are not compressed as they should be here. As for Add, they come behind all others; b is copied.
func (w *Writer) AddBlock(b *block.Stored) (ok bool, err error) {
	if w.err != nil {
		return false, w.err
	}
	if c, ok := b.Codec(); !ok || !w.takes(c) {
		return false, nil
	}
	if w.keys.Rows() > 0 {
		if w.raw() < w.opts.BlockBytes/2 {
			w.nextSmall = w.pipeline.blocks + smallEvery
		}
		if w.err = w.seal(); w.err != nil {
			return false, w.err
		}
	}
	rows, values := b.Keys.Rows(), b.Keys.ValueBytes()
	first, last := b.Keys.Key(0), b.Keys.Key(rows-1)
	if w.meta.Entries > 0 && bytes.Compare(w.last, first) >= 0 {
		w.err = fmt.Errorf("%w: block that begins with key %q", ErrOrder, first)
		return false, w.err
	}
	w.begin(first, true)
	if x := w.opts.PointIndex; x != nil {
		for i := range rows {
			x.Add(base.Hash(b.Keys.Key(i)), pointindex.MakeLoc(uint32(w.pipeline.blocks), uint16(i)))
		}
	}
	w.count(first, 0, base.KindPut, nil)
	w.meta.Entries += uint64(rows - 1)
	w.meta.RawBytes += int64(b.Keys.KeyBytes()-len(first)) + int64(values)
	w.last = append(w.last[:0], last...)
	w.pipeline.carry(w.carried(b))
	w.err = w.emit(w.pipeline.most())
	return true, w.err
}

// carried returns b as a block for the file.
func (w *Writer) carried(b *block.Stored) *sealedBlock {
	s := sealedBlocks.Get()
	e := &s.entry
	e.Fence = append(e.Fence[:0], w.fence...)
	e.Continues, e.Rows, e.KeyForm, e.ValueHeap = false, b.Keys.Rows(), b.FormBytes, b.Keys.ValueBytes()
	s.raw = int64(b.Keys.KeyBytes())
	s.pages = b.AppendBody(s.pages[:0], 0, w.opts.Codec)
	s.ends = append(s.ends[:0], len(s.pages))
	if e.ValueHeap > 0 {
		s.pages = b.AppendBody(s.pages, 1, w.opts.Codec)
		s.ends = append(s.ends, len(s.pages))
	}
	return s
}

// AddRangeDelete adds a range tombstone: it hides the versions older than seq of
// the keys in [low, high). Any order, any time before Finish; both are copied.
func (w *Writer) AddRangeDelete(low, high []byte, seq uint64) error {
	if w.err != nil {
		return w.err
	}
	t := tombstone.Tombstone{Low: bytes.Clone(low), High: bytes.Clone(high), Seq: seq}
	if t.Empty() || seq > base.MaxSeq || max(len(low), len(high)) > base.MaxKeyBytes {
		w.err = fmt.Errorf("%w: range delete [%q, %q), sequence %d", ErrInvalidRow, low, high, seq)
		return w.err
	}
	w.tombs = append(w.tombs, t)
	w.tombBytes += int64(len(low) + len(high) + 8)
	return nil
}

// seal encodes the gathered block and begins another.
func (w *Writer) seal() error {
	s := w.encode()
	s.own, w.values = w.values, s.own[:0]
	s.heap = s.own
	w.pipeline.add(s)
	return w.emit(w.pipeline.most())
}

// sealJumbo is seal for a block of one value that takes several pages. It is the
// caller's, so the block is in the file when sealJumbo returns.
func (w *Writer) sealJumbo(value []byte) error {
	s := w.encode()
	s.heap = value
	w.pipeline.add(s)
	return w.emit(0)
}

// encode moves the gathered keys to a new block.
func (w *Writer) encode() *sealedBlock {
	s := sealedBlocks.Get()
	s.keys = w.keys.Encode(s.keys[:0])
	e := &s.entry
	e.Fence = append(e.Fence[:0], w.fence...)
	e.Continues, e.Rows, e.KeyForm = w.goesOn, w.keys.Rows(), w.keys.FormBytes()
	s.raw = int64(w.keys.KeyBytes())
	w.keys.Reset()
	return s
}

// emit appends to the file, in their order, all blocks of the pipeline but most.
func (w *Writer) emit(most int) error {
	for len(w.pipeline.under) > most {
		s := w.pipeline.next()
		if err := w.append(s); err != nil {
			return err
		}
		s.recycle()
	}
	if w.pipeline.fenceBytes > layout.MaxFenceBytes-base.MaxKeyBytes || w.pipeline.blocks == layout.MaxBlocks {
		return ErrFull
	}
	return nil
}

// append appends a block that is compressed.
func (w *Writer) append(s *sealedBlock) error {
	if w.opts.Resident != nil {
		w.pages = append(w.pages, s.form, s.values)
		s.form, s.values = nil, nil
	}
	at := 0
	for i, end := range s.ends {
		before := w.out.Offset()
		start := len(*w.out.Buf)
		*w.out.Buf = append(*w.out.Buf, s.pages[at:end]...)
		*w.out.Buf = w.id.AppendSum(*w.out.Buf, start, before)
		n := int(w.out.Offset() - before)
		if i == 0 {
			s.entry.KeyPage = n
		} else {
			s.entry.ValuePages = append(s.entry.ValuePages, n)
		}
		if err := w.out.Settle(); err != nil {
			return err
		}
		at = end
	}
	for rest := s.jumbo(); len(rest) > 0; {
		cut := min(len(rest), block.MaxPageBytes)
		n, err := w.page(block.PageValues, w.opts.Codec, rest[:cut])
		if err != nil {
			return err
		}
		s.entry.ValuePages = append(s.entry.ValuePages, n)
		rest = rest[cut:]
	}
	w.index.Add(&s.entry)
	w.rawBlocks += s.bytes()
	return nil
}

// page appends a page to the file and returns its size on disk.
func (w *Writer) page(t block.PageType, c block.Codec, raw []byte) (int, error) {
	before := w.out.Offset()
	*w.out.Buf = w.id.AppendPage(*w.out.Buf, t, before, c, raw)
	n := int(w.out.Offset() - before)
	return n, w.out.Settle()
}

// EstimatedBytes returns about how large the file would be if it were finished
// now, for callers that split at a size. It is the greatest int64 if the table
// ought to be split for another reason. It is asked before each key.
func (w *Writer) EstimatedBytes() int64 {
	if w.out.Buf == nil {
		return w.meta.Size
	}
	if w.estimatedAt != w.pipeline.blocks+len(w.tombs)+1 {
		w.estimate()
	}
	return w.estimated + int64(float64(w.keys.KeyBytes()+len(w.values))*w.shrinks)
}

// estimate sets estimated to what EstimatedBytes is without the block that is being gathered, and shrinks to the part that
// what is not in the file yet will take of its size there.
func (w *Writer) estimate() {
	w.estimatedAt = w.pipeline.blocks + len(w.tombs) + 1
	if w.pipeline.fenceBytes > layout.MaxFenceBytes/2 {
		w.estimated, w.shrinks = math.MaxInt64, 0
		return
	}
	w.shrinks = 1
	if stored := w.out.Offset(); w.rawBlocks > 0 {
		w.shrinks = min(1, float64(stored)/float64(w.rawBlocks))
	}
	bounds := int64(len(w.meta.Smallest) + len(w.last) + 64)
	w.estimated = w.out.Offset() + int64(float64(w.pipeline.bytes())*w.shrinks) + w.tombBytes + int64(w.index.Bytes) + bounds + layout.FooterBytes
}

// Abandon closes the file without finishing it; the caller removes it. After
// Finish it does nothing.
func (w *Writer) Abandon() error {
	if w.err == nil {
		w.err = errFinished
	}
	w.drop()
	w.release()
	return w.out.Close()
}

// Finish writes what is left, syncs the file once, as the last thing that is
// done to it, and closes it. It returns what a manifest needs to know of the
// table. On an error the file is of no use; it is closed as well.
func (w *Writer) Finish() (base.TableMeta, error) {
	err := w.WriteOut()
	if err == nil {
		err = w.out.Finish()
	}
	w.out.Close()
	w.err = errFinished
	if err != nil {
		w.drop()
	}
	w.release()
	if err != nil {
		return base.TableMeta{}, err
	}
	return w.meta, nil
}

// PartSeqs returns what Reader.AdoptSeqs takes.
func (w *Writer) PartSeqs() []uint64 { return w.partSeqs }

// TakePages returns, after Finish, the decoded pages for Reader.Adopt, whose they are
// then, or the caller's to discard. They are the writer's until then.
func (w *Writer) TakePages() []*cache.Page {
	pages := w.pages
	w.pages = nil
	return pages
}

// drop gives up what is not in the file, and the decoded pages.
func (w *Writer) drop() {
	w.pipeline.drop()
	DiscardPages(w.opts.Resident, w.TakePages())
}

// release gives back the memory of blocks. Nothing can be added any more.
func (w *Writer) release() {
	if w.gathered != nil {
		w.gathered.recycle()
		w.gathered = nil
	}
}

// DiscardPages frees pages that TakePages returned.
func DiscardPages(c *cache.Cache, pages []*cache.Page) {
	for _, p := range pages {
		if p != nil {
			c.Discard(p)
		}
	}
}

// WriteOut writes all of the table to its file, which is not synced yet. From then on nothing that was added is
// read any more, and nothing can be added: Finish, or Abandon, comes next.
func (w *Writer) WriteOut() error {
	if w.err == nil {
		if w.err = w.finish(); w.err == nil {
			w.err = w.out.Flush()
		}
		if w.err == nil {
			w.err = errWritten
		}
	}
	if w.err == errWritten {
		return nil
	}
	return w.err
}

func (w *Writer) finish() error {
	w.pipeline.last = true
	if w.keys.Rows() > 0 {
		if err := w.seal(); err != nil && err != ErrFull {
			return err
		}
	}
	if err := w.emit(0); err != nil && err != ErrFull {
		return err
	}
	if w.meta.Entries == 0 && len(w.tombs) == 0 {
		return ErrEmpty
	}
	w.tombs = layout.SortTombstones(w.tombs)
	w.bounds()
	f := layout.Footer{Blocks: uint64(w.index.Blocks), Rows: w.meta.Entries, Tombs: w.meta.RangeDeletes}
	f.BlocksBytes = w.out.Offset() - base.FileHeaderBytes
	steps := []func() error{w.writeTombstones, w.writeIndex, w.writeProperties}
	for i, size := range []*int64{&f.TombBytes, &f.IndexBytes, &f.PropBytes} {
		before := w.out.Offset()
		if err := steps[i](); err != nil {
			return err
		}
		*size = w.out.Offset() - before
	}
	*w.out.Buf = layout.AppendFooter(*w.out.Buf, f, w.id, w.out.Offset())
	w.meta.Size = w.out.Offset()
	return nil
}

// bounds completes the meta with what rows and range tombstones make together.
func (w *Writer) bounds() {
	m := &w.meta
	first := m.Entries == 0
	m.Largest = append([]byte{}, w.last...)
	m.RangeDeletes = uint64(len(w.tombs))
	for _, t := range w.tombs {
		layout.CoverBounds(m, t, first)
		first = false
		m.MinSeq, m.MaxSeq = min(m.MinSeq, t.Seq), max(m.MaxSeq, t.Seq)
		m.RawBytes += int64(len(t.Low) + len(t.High))
	}
}

func (w *Writer) writeTombstones() error {
	raw := w.encoded[:0]
	for i, t := range w.tombs {
		raw = layout.AppendTombstone(raw, t)
		if len(raw) >= layout.PageBytes || i == len(w.tombs)-1 {
			if _, err := w.page(block.PageTombstones, block.None, raw); err != nil {
				return err
			}
			raw = raw[:0]
		}
	}
	return nil
}

func (w *Writer) writeIndex() error {
	for _, raw := range w.index.Pages {
		if _, err := w.page(block.PageIndex, w.opts.Codec, raw); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) writeProperties() error {
	w.encoded = layout.AppendProperties(w.encoded[:0], &w.meta)
	_, err := w.page(block.PageProperties, block.None, w.encoded)
	return err
}
