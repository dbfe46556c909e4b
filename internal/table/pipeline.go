package table

import (
	"sync"

	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/recycle"
	"github.com/cairndb/cairn/internal/turn"
)

// sealedBlock is a block on its way to the file.
type sealedBlock struct {
	entry  layout.Entry
	keys   []byte         // raw key page
	heap   []byte         // values: own, or the caller's
	own    []byte         // memory for values
	raw    int64          // bytes of the keys, as they came
	pages  []byte         // what will be in the file but for the checksums, which depend on the place
	ends   []int          // of each page in pages, the key page first
	helped bool           // a helper was given it
	done   sync.WaitGroup // waits for that

	decoded      []cache.Page // new ones, for the next two
	form, values *cache.Page  // the decoded pages, nil if not wanted, or there was no room
}

// sealedBlocks recycles blocks that are in the file, whoever writes the next one.
var sealedBlocks recycle.Pool[sealedBlock]

// mostRecycled is how many bytes each buffer of a writer, and of a block, may have room for
// that is recycled: what the largest page takes, compressed or not.
const mostRecycled = 2 * block.MaxPageBytes

// bytes returns how many there are of keys and values, before they are compressed.
func (s *sealedBlock) bytes() int64 { return s.raw + int64(s.entry.ValueHeap) }

func (s *sealedBlock) recycle() {
	s.heap, s.decoded = nil, nil
	if max(cap(s.keys), cap(s.own), cap(s.pages)) <= mostRecycled {
		sealedBlocks.Put(s)
	}
}

// jumbo returns the value of a block that takes several pages; nil if one is enough.
func (s *sealedBlock) jumbo() []byte {
	if len(s.heap) <= block.MaxPageBytes {
		return nil
	}
	return s.heap
}

// compress makes the pages, but those of a jumbo value, which are made one by one when they are written: they would
// take as much memory as the value.
func (s *sealedBlock) compress(c block.Codec) {
	s.pages = block.AppendBody(s.pages[:0], block.PageKeys, c, s.keys)
	s.ends = append(s.ends[:0], len(s.pages))
	if len(s.heap) > 0 && s.jumbo() == nil {
		s.pages = block.AppendBody(s.pages, block.PageValues, c, s.heap)
		s.ends = append(s.ends, len(s.pages))
	}
}

// decode makes the decoded pages, as a reader would. What takes several pages is never
// resident.
func (s *sealedBlock) decode(c *cache.Cache) {
	if s.jumbo() != nil {
		return
	}
	var err error
	s.form = c.Prepare(&s.decoded[0], s.entry.KeyForm, func(dst []byte) { err = block.Expand(dst, s.keys) })
	if err != nil { // it cannot be: then the reader will say what is wrong
		c.Discard(s.form)
		s.form = nil
	}
	s.values = c.Prepare(&s.decoded[1], len(s.heap), func(dst []byte) { copy(dst, s.heap) })
}

// pipeline compresses blocks, on other goroutines if it has helpers, and gives them
// back in the order they came. For one goroutine.
type pipeline struct {
	codec    block.Codec
	helpers  int
	givesWay func() bool  // who waits for a processor comes first; nil: never
	share    turn.Share   // of the processors, if it gives way
	crowded  bool         // somebody waited for one when the block before had come
	resident *cache.Cache // gets the pages decoded; nil: they are not wanted
	last     bool         // the block that comes is the last: a helper would only be waited for

	blocks     int // that have come
	fenceBytes int // of all these

	under []*sealedBlock // not given back yet, the oldest first
	pages []cache.Page   // new ones; those of some blocks, which go at about the same time, are one allocation
}

// most is how many blocks may be under way while the caller gathers the next one.
func (p *pipeline) most() int { return p.helpers }

// add begins to compress s. What it takes is some hundred microseconds, after which those
// who wait for a processor come first, if they shall: a commit must not wait for a whole
// flush, nor a reader for a store that comes to rest. As long as there are any, there is no
// helper either. Not after the last block, as the file is synced next: so a small table is
// written on one processor, with one encoder.
func (p *pipeline) add(s *sealedBlock) {
	s.entry.ValueHeap = len(s.heap)
	p.join(s)
	s.decoded = p.newPages()
	if s.helped = p.helpers > 0 && !p.last && !p.crowded; !s.helped {
		p.work(s)
	} else {
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			p.work(s)
		}()
	}
	p.giveWay()
}

// carry adds a block whose pages are made.
func (p *pipeline) carry(s *sealedBlock) {
	p.join(s)
	s.helped = false
	p.giveWay()
}

func (p *pipeline) join(s *sealedBlock) {
	s.entry.ValuePages = s.entry.ValuePages[:0]
	p.blocks++
	p.fenceBytes += len(s.entry.Fence)
	p.under = append(p.under, s)
}

func (p *pipeline) giveWay() {
	if p.givesWay != nil && !p.last {
		p.crowded = p.givesWay() && p.share.GiveWay()
	}
}

// mostPages are allocated at once at most, a few for a small table.
const mostPages = 32

// newPages returns two pages for the block that has come, if they are wanted.
func (p *pipeline) newPages() []cache.Page {
	if p.resident == nil {
		return nil
	}
	if len(p.pages) == 0 {
		p.pages = make([]cache.Page, min(2*p.blocks, mostPages))
	}
	two := p.pages[:2:2]
	p.pages = p.pages[2:]
	return two
}

// work is what a helper does for a block.
func (p *pipeline) work(s *sealedBlock) {
	s.compress(p.codec)
	if p.resident != nil {
		s.decode(p.resident)
	}
}

// next waits for the oldest block and takes it out.
func (p *pipeline) next() *sealedBlock {
	s := p.under[0]
	p.under = p.under[:copy(p.under, p.under[1:])]
	s.done.Wait()
	return s
}

// bytes returns the raw bytes under way.
func (p *pipeline) bytes() (n int64) {
	for _, s := range p.under {
		n += s.bytes()
	}
	return n
}

// drop waits for what is under way and forgets it.
func (p *pipeline) drop() {
	for len(p.under) > 0 {
		s := p.next()
		DiscardPages(p.resident, []*cache.Page{s.form, s.values})
	}
}
