package table

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/layout"
	"github.com/cairndb/cairn/internal/pointindex"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Verified is what Verify has looked at, and found.
type Verified struct {
	Whole    bool    // all of the file was read
	Bytes    int64   // of it
	Entries  uint64  // rows that were seen
	Problems []error // *base.CorruptionError, and at most one error of the file, which ends it
}

// Verify reads the whole file, past the cache, and checks every checksum, the
// order of all rows, and that index, counts and bounds are true. What is damaged
// does not keep it from looking at the rest. progress, if not nil, is told the bytes
// done so far now and then. The error is ctx's, or all problems joined.
func (r *Reader) Verify(ctx context.Context, progress func(bytesDone int64)) (Verified, error) {
	v := verifier{r: r}
	v.found.MinSeq = math.MaxUint64
	err := v.run(ctx, progress)
	v.seen.Entries = v.found.Entries
	return v.seen, cmp.Or(err, errors.Join(v.seen.Problems...))
}

// verifier gathers what the rows say, to compare it with the properties.
type verifier struct {
	r       *Reader
	seen    Verified
	form    []byte
	buf     []byte // for value pages
	found   base.TableMeta
	last    []byte
	lastSeq uint64
	behind  bool // last and lastSeq are those of the block before
}

// problem notes what is wrong, if anything, and reports whether to go on.
func (v *verifier) problem(err error) bool {
	if err != nil {
		v.seen.Problems = append(v.seen.Problems, err)
	}
	return err == nil || errors.Is(err, base.ErrCorrupt)
}

// run looks at everything. The error is ctx's.
func (v *verifier) run(ctx context.Context, progress func(bytesDone int64)) error {
	t, err := v.r.readTail(true)
	if err == nil {
		err = v.r.load()
	}
	if err != nil {
		v.problem(err)
		return nil
	}
	for b := range t.index.Blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !v.block(b) {
			return nil
		}
		v.seen.Bytes = v.r.index.End(b)
		if progress != nil {
			progress(v.seen.Bytes)
		}
	}
	if len(v.seen.Problems) == 0 { // else the rows that were seen are not all
		v.problem(v.finish(t))
	}
	v.seen.Whole, v.seen.Bytes = true, v.r.meta.Size
	if progress != nil {
		progress(v.seen.Bytes)
	}
	return nil
}

// block looks at a block, and reports whether to go on.
func (v *verifier) block(b int) bool {
	e := &v.r.index.Blocks[b]
	v.form = resize(v.form, int(e.KeyForm))
	err := v.r.readKeys(v.r.src, b, v.form)
	if !v.problem(err) {
		return false
	}
	behind := v.behind
	if v.behind = err == nil; v.behind {
		keys := block.View(v.form)
		if b == 0 || behind {
			v.problem(v.boundary(b, &keys))
		}
		for i := range keys.Rows() {
			v.count(keys.Key(i), keys.Seq(i), keys.Kind(i))
		}
		n := keys.Rows() - 1
		v.last, v.lastSeq = append(v.last[:0], keys.Key(n)...), keys.Seq(n)
		v.found.RawBytes += int64(keys.ValueBytes())
	}
	return v.problem(v.values(b, e))
}

// boundary checks what fences do not tell of the order of block b, which has keys, and the one before.
func (v *verifier) boundary(b int, keys *block.Keys) error {
	if b == 0 {
		v.found.Smallest = bytes.Clone(keys.Key(0))
	} else if e := &v.r.index.Blocks[b]; e.Continues && keys.Seq(0) >= v.lastSeq {
		return base.Corruptf(v.r.name, e.Off, "block begins with sequence %d of %q, behind sequence %d", keys.Seq(0), v.last, v.lastSeq)
	}
	return nil
}

func (v *verifier) count(key []byte, seq uint64, kind base.Kind) {
	m := &v.found
	m.Entries++
	if kind == base.KindDelete {
		m.Deletes++
	}
	m.RawBytes += int64(len(key))
	m.MinSeq, m.MaxSeq = min(m.MinSeq, seq), max(m.MaxSeq, seq)
}

func (v *verifier) values(b int, e *layout.Block) error {
	if e.Jumbo() {
		return v.r.eachJumboPage(b, func(off int64, size, from, to int) error {
			v.buf = resize(v.buf, to-from)
			return v.r.readValuePage(off, size, v.buf)
		})
	}
	if e.ValueHeap == 0 {
		return nil
	}
	v.buf = resize(v.buf, int(e.ValueHeap))
	return v.r.readValues(b, v.buf)
}

// finish compares what was found with the properties.
func (v *verifier) finish(t *tail) error {
	m := &v.found
	first := m.Entries == 0
	m.Largest = v.last
	m.RangeDeletes = uint64(len(t.tombs))
	for _, tomb := range t.tombs {
		v.cover(tomb, first, &t.props)
		first = false
	}
	if what := layout.Contradiction(m, &t.props); what != "" {
		return base.Corruptf(v.r.name, t.footer.PropOff(), "the table's %s are not what the properties say", what)
	}
	return nil
}

// cover adds a tombstone to what was found. Its own sequence is not known if the
// table has a global one: it is then taken to lie where the properties say.
func (v *verifier) cover(t tombstone.Tombstone, first bool, props *base.TableMeta) {
	m := &v.found
	layout.CoverBounds(m, t, first)
	m.RawBytes += int64(len(t.Low) + len(t.High))
	low, high := t.Seq, t.Seq
	if v.r.meta.GlobalSeq != 0 {
		low, high = props.MinSeq, props.MaxSeq
	}
	m.MinSeq, m.MaxSeq = min(m.MinSeq, low), max(m.MaxSeq, high)
}

// BuildIndex reads all key pages, past the cache, and returns a point index for
// AttachIndex, which is the caller's. The error is ctx's, one of the file,
// a *base.CorruptionError, or pointindex.ErrCrowded: then do without.
func (r *Reader) BuildIndex(ctx context.Context) (*pointindex.Index, error) {
	return r.buildIndex(ctx, pointindex.NewBuilder(r.budget))
}

func (r *Reader) buildIndex(ctx context.Context, points *pointindex.Builder) (*pointindex.Index, error) {
	defer points.Discard()
	if err := r.load(); err != nil {
		return nil, err
	}
	var form, last []byte
	for b := range r.index.Blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		form = resize(form, int(r.index.Blocks[b].KeyForm))
		if err := r.readKeys(r.src, b, form); err != nil {
			return nil, err
		}
		keys := block.View(form)
		for i := range keys.Rows() {
			key := keys.Key(i)
			if b+i > 0 && bytes.Equal(key, last) {
				continue
			}
			points.Add(base.Hash(key), pointindex.MakeLoc(uint32(b), uint16(i)))
			last = append(last[:0], key...)
		}
	}
	return points.Build()
}

// MetaBytes returns the memory the Reader counts as arena.ClassMeta.
func (r *Reader) MetaBytes() int64 { return r.metaBytes }
