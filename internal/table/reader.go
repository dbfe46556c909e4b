package table

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/prefetch"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Reader reads one table. It is safe for concurrent use until Close.
type Reader struct {
	// Constant after OpenLazily.
	src    source
	name   string
	id     block.Identity
	meta   base.TableMeta
	store  base.ID
	cache  *cache.Cache
	budget *arena.Budget
	footer layout.Footer
	tombs  *tombstone.List

	// Constant from when loaded is true; a point index, pages and an Iter that stands
	// somewhere have come from them.
	index   *layout.Index
	slots   []cache.Slot // of block i the key page has slot 2i, the value page slot 2i+1
	loaded  atomic.Bool
	loading sync.Mutex

	boundBytes int64 // of the bounds of tombs and of the table
	metaBytes  int64 // counted as arena.ClassMeta

	points atomic.Pointer[pointindex.Index]
	apart  apart

	partSeqs []uint64 // no row of a part has a greater one stored; nil: not known
}

// Name returns what errors call the file.
func (r *Reader) Name() string { return r.name }

// Row is what Get found.
type Row struct {
	Kind    base.Kind
	KeyOnly bool // set by the caller: values are not wanted, nor read; Value and Page stay as they are
	Seq     uint64
	Value   []byte      // nil for a delete, never nil for a put
	Page    *cache.Page // holds Value; nil if Value is empty or on the Go heap
}

// maxCandidates bounds how many wrong candidates of the point index Get looks
// at before it searches, so that keys made to collide cost no more than a search.
const maxCandidates = 8

// Get sets row to the newest version of key that vis sees; ok is false if there is
// none, and row as it was. Range tombstones are the caller's business. hash is base.Hash(key). The
// caller is inside an epoch of the cache's domain and, if it keeps Value beyond
// that, pins Page before it leaves. Nothing is allocated if pages are resident.
//
// What is found is written where the caller wants it, and keys are handed on as a pointer: what
// is written in words and copied in pairs of them right after waits for the former.
func (r *Reader) Get(row *Row, key []byte, hash uint64, vis base.Visibility) (ok bool, err error) {
	x := r.points.Load()
	if x == nil {
		return r.search(row, key, vis)
	}
	var keys block.Keys
	probe := x.Find(hash)
	for range maxCandidates {
		loc, ok := probe.Next()
		if !ok {
			return false, nil
		}
		var s *scratch
		p := r.cache.Load(&r.slots[2*loc.Block()])
		if p == nil {
			if p, s, err = r.getKeys(loc.Block(), row.KeyOnly); err != nil {
				return false, err
			}
		}
		keys.View(p.Data())
		if !row.KeyOnly {
			r.prefetchValue(loc, &keys)
		}
		found := bytes.Equal(keys.Key(loc.Row()), key)
		if found {
			ok, err = r.newest(row, key, loc.Block(), loc.Row(), &keys, vis, s)
		}
		if s != nil {
			s.done()
		}
		if found {
			return ok, err
		}
	}
	return r.search(row, key, vis)
}

// prefetchValue brings the value of a row that is most likely the right one on its way to the processor, so
// that memory is waited for once for key and value.
func (r *Reader) prefetchValue(loc pointindex.Loc, keys *block.Keys) {
	if p := r.slots[2*loc.Block()+1].Peek(); p != nil {
		off, n := keys.Value(loc.Row())
		data := p.Data()
		off = min(off, len(data))
		prefetch.Lines(data[off:min(off+min(n, prefetch.Most), len(data))])
	}
}

// search is Get without a point index.
func (r *Reader) search(row *Row, key []byte, vis base.Visibility) (ok bool, err error) {
	if r.Blocks() == 0 {
		return false, nil
	}
	if err := r.load(); err != nil {
		return false, err
	}
	b := r.index.Find(key)
	p, s, err := r.getKeys(b, row.KeyOnly)
	if err != nil {
		return false, err
	}
	defer s.done()
	keys := block.View(p.Data())
	i := keys.SearchGE(key)
	if i == keys.Rows() || !bytes.Equal(keys.Key(i), key) {
		return false, nil
	}
	return r.newest(row, key, b, i, &keys, vis, s)
}

// Part returns a key such that about that share of the table's blocks, 0 to less than 1, lies below it.
func (r *Reader) Part(share float64) ([]byte, error) {
	b := int(share * float64(r.Blocks()))
	if b == 0 {
		return r.meta.Smallest, nil
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r.index.Fence(b), nil
}

// newest sets row to the first row from row i of block b on that vis sees, among
// those of key. Row i is one of key, its versions may reach into later blocks. s is what
// getKeys returned for block b.
func (r *Reader) newest(row *Row, key []byte, b, i int, keys *block.Keys, vis base.Visibility, s *scratch) (ok bool, err error) {
	for {
		if seq := r.seq(keys.Seq(i)); vis.Sees(seq) {
			if row.KeyOnly {
				row.Kind, row.Seq = keys.Kind(i), seq
				return true, nil
			}
			return r.fill(row, b, i, keys, seq, s)
		}
		if i++; i == keys.Rows() {
			if b++; b == len(r.index.Blocks) || !r.index.Blocks[b].Continues {
				return false, nil
			}
			p, err := r.keyPage(b)
			if err != nil {
				return false, err
			}
			keys.View(p.Data())
			i, s = 0, nil
		}
		if !bytes.Equal(keys.Key(i), key) {
			return false, nil
		}
	}
}

// fill sets row to row i of block b. s, unless it is nil, holds the block as it is stored.
func (r *Reader) fill(row *Row, b, i int, keys *block.Keys, seq uint64, s *scratch) (ok bool, err error) {
	kind, value, page := keys.Kind(i), []byte(nil), (*cache.Page)(nil)
	off, n := keys.Value(i)
	switch {
	case kind == base.KindDelete:
	case n == 0:
		value = block.EmptyValue
	case r.index.Blocks[b].Jumbo():
		if value, err = r.readJumbo(b); err != nil {
			return false, err
		}
	default:
		if page = r.cache.Load(&r.slots[2*b+1]); page == nil {
			if page, err = r.fillValues(b, s, asked); err != nil {
				return false, err
			}
		}
		value = page.Data()[off : off+n : off+n]
	}
	row.Kind, row.Seq, row.Value, row.Page = kind, seq, value, page
	return true, nil
}

// seq returns the sequence that counts for a stored one.
func (r *Reader) seq(stored uint64) uint64 {
	if r.meta.GlobalSeq != 0 {
		return r.meta.GlobalSeq
	}
	return stored
}

// maxSeq returns the greatest sequence that counts of any row.
func (r *Reader) maxSeq() uint64 { return r.seq(r.meta.MaxSeq) }

// partBlocks is of how many blocks it is known how new their rows are.
const partBlocks = 64

// newestRow returns a sequence that the one that counts of no row exceeds, of those in the part that block b is in, if
// there are parts.
func (r *Reader) newestRow(b int) uint64 {
	if r.partSeqs == nil {
		return r.maxSeq()
	}
	return r.seq(r.partSeqs[b/partBlocks])
}

// keyPage returns the key page of block b; the caller is inside an epoch.
func (r *Reader) keyPage(b int) (*cache.Page, error) {
	if p := r.cache.Load(&r.slots[2*b]); p != nil {
		return p, nil
	}
	return r.fillKeys(b, walked)
}

// purpose is what a page is read for.
type purpose bool

const (
	walked purpose = false
	asked  purpose = true // by a Get, for one row
)

// fillPage is Cache.Fill of a page, which is the i-th of all.
func (r *Reader) fillPage(i, size int, why purpose, read func(dst []byte) error) (*cache.Page, error) {
	if why == asked {
		return r.cache.FillOnce(&r.slots[i], size, read)
	}
	return r.cache.Fill(&r.slots[i], size, read)
}

// fillKeys and fillValues stand alone because their closures may escape: their
// callers must not allocate.
func (r *Reader) fillKeys(b int, why purpose) (*cache.Page, error) {
	src := r.file(why)
	return r.fillPage(2*b, int(r.index.Blocks[b].KeyForm), why, func(dst []byte) error { return r.readKeys(src, b, dst) })
}

// getKeys is keyPage for a Get. A key page that is not resident is read together with the
// value page behind it, unless that is not wanted, resident, or there is none: most likely it is
// needed next. Then s holds both as they are stored, until done.
func (r *Reader) getKeys(b int, keyOnly bool) (p *cache.Page, s *scratch, err error) {
	if p = r.cache.Load(&r.slots[2*b]); p != nil {
		return p, nil, nil
	}
	if keyOnly || !r.hasValuePage(b) || r.cache.Load(&r.slots[2*b+1]) != nil {
		p, err = r.fillKeys(b, asked)
		return p, nil, err
	}
	return r.fillBlock(b, asked)
}

// fillBlock makes the key page of block b resident, and reads the value page behind it with it. s has both as they
// are stored, until done; it is nil if another goroutine has read the keys.
func (r *Reader) fillBlock(b int, why purpose) (p *cache.Page, s *scratch, err error) {
	e := &r.index.Blocks[b]
	s = scratches.Get().(*scratch)
	s.stored = s.stored[:0]
	src := r.file(why)
	p, err = r.fillPage(2*b, int(e.KeyForm), why, func(form []byte) error {
		if err := s.read(src, e.Off, int(e.KeyPage)+int(e.ValuePage)); err != nil {
			return err
		}
		return r.expandKeys(s, b, form)
	})
	if err != nil || len(s.stored) == 0 {
		s.done()
		s = nil
	}
	return p, s, err
}

// valuePage returns the value page of block b, which has exactly one; the
// caller is inside an epoch.
func (r *Reader) valuePage(b int) (*cache.Page, error) {
	if p := r.cache.Load(&r.slots[2*b+1]); p != nil {
		return p, nil
	}
	return r.fillValues(b, nil, walked)
}

// fillValues reads the value page of block b, or takes it from s if that is not nil.
func (r *Reader) fillValues(b int, s *scratch, why purpose) (*cache.Page, error) {
	e := &r.index.Blocks[b]
	return r.fillPage(2*b+1, int(e.ValueHeap), why, func(dst []byte) error {
		if s != nil {
			return r.decompress(s.stored[e.KeyPage:], e.ValueOff(), dst)
		}
		return r.readValues(b, dst)
	})
}

// AttachIndex makes Get use x, which was built of this table's rows, by a Writer
// or BuildIndex, and returns the index used so far. The Reader owns x until
// another (or nil) takes its place; the old one is the caller's to free once no
// reader can be using it.
func (r *Reader) AttachIndex(x *pointindex.Index) (old *pointindex.Index) { return r.points.Swap(x) }

// Adopt makes the pages that the table's Writer has kept decoded resident. The table was
// opened with its index, and nobody may have read from it yet.
func (r *Reader) Adopt(pages []*cache.Page) {
	for i, p := range pages {
		if p != nil {
			r.cache.Adopt(&r.slots[i], p)
		}
	}
}

// AdoptSeqs takes what the table's Writer knows of its sequences: the greatest one of all is mostly that of a range
// tombstone, or of a few rows. Nobody may have read from the table yet.
func (r *Reader) AdoptSeqs(partSeqs []uint64) { r.partSeqs = partSeqs }

// Inherit takes over what o, another Reader of the same file, has in memory: its pages and
// its point index, which those that read from o now may go on using: they are inside the
// epoch. r was opened with its index, and nobody may have read from it yet. o reads again
// what it is asked for.
func (r *Reader) Inherit(o *Reader) {
	r.cache.Move(r.slots, o.slots)
	r.points.Store(o.points.Swap(nil))
}

// Codec returns the codec of the values of the first block, or of its keys if it has none,
// as the page says, which is not verified; None if there is no block. It reads the headers
// of two pages, and not the index.
func (r *Reader) Codec() (block.Codec, error) {
	if r.Blocks() == 0 {
		return block.None, nil
	}
	var keys, next [block.HeaderBytes]byte
	if err := r.src.readAt(keys[:], base.FileHeaderBytes); err != nil {
		return block.None, err
	}
	if err := r.src.readAt(next[:], base.FileHeaderBytes+int64(block.SizeFromHeader(keys[:]))); err != nil {
		return block.None, err
	}
	if block.PageType(next[1]) == block.PageValues {
		return block.Codec(next[0]), nil
	}
	return block.Codec(keys[0]), nil
}

// Index returns the attached point index, nil if there is none.
func (r *Reader) Index() *pointindex.Index { return r.points.Load() }

// Tombstones returns the table's range tombstones, nil if there are none.
func (r *Reader) Tombstones() *tombstone.List { return r.tombs }

// Meta returns the description the table was opened with. Do not modify it.
func (r *Reader) Meta() *base.TableMeta { return &r.meta }

// Blocks returns the number of blocks.
func (r *Reader) Blocks() int { return int(r.footer.Blocks) }

// Close drops the table's pages from the cache, frees the point index and
// closes the file. Nobody may be using the Reader or its iterators, or come to
// do so; pages that are pinned stay valid until they are unpinned.
func (r *Reader) Close() error {
	r.cache.DropAll(r.slots)
	r.budget.Add(arena.ClassMeta, -r.metaBytes)
	var err error
	if x := r.points.Swap(nil); x != nil {
		err = x.Free()
	}
	return errors.Join(err, r.apart.close(), r.src.f.Close())
}
