package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/epoch"
	"github.com/cairndb/cairn/vfs"
)

// memFile is a file in memory that notes what a table may not do to it, and
// fails where a test wants it to.
type memFile struct {
	mu      sync.Mutex
	b       []byte
	syncs   int
	closed  bool
	late    bool // written after a sync
	reads   int
	asked   int64 // bytes, by reads
	fail    error
	failAt  int // fail the n-th read, write or sync from now on; 0: none
	stingy  bool
	maxRead int

	gate     chan struct{} // if not nil, reads from gateFrom on wait until it is closed; set before anybody reads
	gateFrom atomic.Int64
}

var errDisk = errors.New("disk on fire")

func (f *memFile) step() error {
	if f.failAt > 0 {
		if f.failAt--; f.failAt == 0 {
			return errDisk
		}
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if f.gate != nil && off >= f.gateFrom.Load() {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, errors.New("read of a closed file")
	}
	f.asked += int64(len(b))
	f.reads, f.maxRead = f.reads+1, max(f.maxRead, len(b))
	if err := f.step(); err != nil {
		return 0, err
	}
	if off >= int64(len(f.b)) {
		return 0, io.EOF
	}
	if f.stingy && len(b) > 1 {
		return copy(b[:len(b)/2], f.b[off:]), nil
	}
	n := copy(b, f.b[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.late = f.late || f.syncs > 0 || f.closed
	if err := f.step(); err != nil {
		return 0, err
	}
	if off != int64(len(f.b)) {
		return 0, fmt.Errorf("write at %d into a file of %d bytes", off, len(f.b))
	}
	if f.stingy && len(b) > 1 {
		b = b[:len(b)/2]
	}
	f.b = append(f.b, b...)
	return len(b), nil
}

func (f *memFile) Sync() error {
	f.syncs++
	return f.step()
}

func (f *memFile) Close() error                   { f.closed = true; return nil }
func (f *memFile) Size() (int64, error)           { return int64(len(f.b)), nil }
func (f *memFile) Preallocate(off, n int64) error { return errors.ErrUnsupported }

var (
	storeID = base.ID(bytes.Repeat([]byte{0x53}, 16))
	fileID  = base.ID(bytes.Repeat([]byte{0x46}, 16))
)

// row and tomb are the model's entries.
type row struct {
	key  string
	seq  uint64
	kind base.Kind
	val  string
}

type tomb struct {
	low, high string
	seq       uint64
}

func compareRows(a, b row) int {
	if c := bytes.Compare([]byte(a.key), []byte(b.key)); c != 0 {
		return c
	}
	switch {
	case a.seq > b.seq:
		return -1
	case a.seq < b.seq:
		return 1
	}
	return 0
}

// content is what a test table holds.
type content struct {
	rows  []row
	tombs []tomb
}

func (c *content) sort() {
	slices.SortFunc(c.rows, compareRows)
	c.rows = slices.CompactFunc(c.rows, func(a, b row) bool { return compareRows(a, b) == 0 })
}

// write makes a table file of c.
func (c *content) write(t testing.TB, opts WriterOptions) (*memFile, base.TableMeta) {
	t.Helper()
	f := &memFile{}
	opts.Name, opts.Num, opts.File, opts.Store = "7.sst", 7, fileID, storeID
	w := NewWriter(f, opts)
	c.addTo(t, w)
	meta, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if f.syncs != 1 || f.late || !f.closed {
		t.Fatalf("%d syncs, written later: %v, closed: %v", f.syncs, f.late, f.closed)
	}
	return &memFile{b: f.b}, meta
}

func (c *content) addTo(t testing.TB, w *Writer) {
	t.Helper()
	for _, r := range c.rows {
		if err := w.Add([]byte(r.key), r.seq, r.kind, []byte(r.val)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range c.tombs {
		if err := w.AddRangeDelete([]byte(d.low), []byte(d.high), d.seq); err != nil {
			t.Fatal(err)
		}
	}
}

// room is a cache with all it needs.
type room struct {
	budget *arena.Budget
	dom    *epoch.Domain
	cache  *cache.Cache
	slot   *epoch.Slot
}

func newRoom(t testing.TB, limit int64) *room {
	m := &room{budget: arena.NewBudget(limit), dom: epoch.New()}
	m.cache = cache.New(m.budget, m.dom)
	m.slot = m.dom.Register()
	t.Cleanup(func() {
		m.slot.Release()
		if err := m.cache.Close(); err != nil {
			t.Errorf("close cache: %v", err)
		}
		if n := m.budget.Used(); n != 0 {
			t.Errorf("%d bytes of the budget still used", n)
		}
	})
	return m
}

// opener is a way to open a table.
type opener func(vfs.File, base.TableMeta, base.ID, string, *cache.Cache, *arena.Budget) (*Reader, error)

var openers = map[string]opener{"at once": Open, "lazily": OpenLazily}

func (m *room) open(t testing.TB, f *memFile, meta base.TableMeta) *Reader {
	t.Helper()
	r, err := Open(f, meta, storeID, "7.sst", m.cache, m.budget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil || !f.closed {
			t.Errorf("close: %v, file closed: %v", err, f.closed)
		}
	})
	return r
}

// get is Reader.Get with a copy of the value.
func (m *room) get(r *Reader, key string, vis base.Visibility) (row, bool, error) {
	m.slot.Enter()
	defer m.slot.Exit()
	var got Row
	ok, err := r.Get(&got, []byte(key), base.Hash([]byte(key)), vis)
	if (got.Value == nil) != (got.Kind != base.KindPut) && ok {
		return row{}, false, fmt.Errorf("nil value for %v of %q", got.Kind, key)
	}
	return row{key, got.Seq, got.Kind, string(got.Value)}, ok, err
}

// has is get of the key only.
func (m *room) has(r *Reader, key string, vis base.Visibility) (row, bool, error) {
	m.slot.Enter()
	defer m.slot.Exit()
	got := Row{KeyOnly: true}
	ok, err := r.Get(&got, []byte(key), base.Hash([]byte(key)), vis)
	if got.Value != nil || got.Page != nil {
		return row{}, false, fmt.Errorf("a value of %d bytes of %q", len(got.Value), key)
	}
	return row{key: key, seq: got.Seq, kind: got.Kind}, ok, err
}

// find is what get ought to say.
func (c *content) find(key string, vis base.Visibility) (row, bool) {
	i, _ := slices.BinarySearchFunc(c.rows, row{key: key, seq: 1 << 63}, compareRows)
	for ; i < len(c.rows) && c.rows[i].key == key; i++ {
		if vis.Sees(c.rows[i].seq) {
			return c.rows[i], true
		}
	}
	return row{}, false
}

func random(r *rand.Rand, n, alphabet int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(alphabet))
	}
	return string(b)
}

// randomContent makes tables of many shapes.
func randomContent(r *rand.Rand) *content {
	c := &content{}
	n, alphabet, maxKey := r.IntN(400), 1+r.IntN(256), 1+r.IntN(24)
	prefix, maxVal := random(r, r.IntN(40), 256), []int{0, 1, 20, 300, 3000}[r.IntN(5)]
	seqs := uint64(1) << r.IntN(40)
	for range n {
		w := row{prefix + random(r, r.IntN(maxKey+1), alphabet), r.Uint64N(seqs), base.KindPut, random(r, r.IntN(maxVal+1), 4)}
		if r.IntN(4) == 0 {
			w.kind, w.val = base.KindDelete, ""
		}
		for range 1 + r.IntN(2)*r.IntN(20) {
			c.rows = append(c.rows, w)
			w.seq = r.Uint64N(seqs)
		}
	}
	for range r.IntN(2) * r.IntN(30) {
		low, high := prefix+random(r, r.IntN(5), alphabet), prefix+random(r, 1+r.IntN(5), alphabet)
		if low < high {
			c.tombs = append(c.tombs, tomb{low, high, r.Uint64N(seqs)})
		}
	}
	if c.sort(); len(c.rows)+len(c.tombs) == 0 {
		c.rows = []row{{"only", 1, base.KindPut, ""}}
	}
	return c
}

// counters returns n rows of sequential keys.
func counters(n, valueBytes int) *content {
	c := &content{}
	for i := range n {
		c.rows = append(c.rows, row{fmt.Sprintf("counter%09d", i), 1, base.KindPut, string(bytes.Repeat([]byte{byte(i)}, valueBytes))})
	}
	return c
}

var codecs = []block.Codec{block.None, block.S2, block.Zstd}

var everything = base.Visibility{Snapshot: base.MaxSeq}
