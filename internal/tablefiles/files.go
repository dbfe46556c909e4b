package tablefiles

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/cache"
	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/table"
	"github.com/cairndb/cairn/internal/tree"
	"github.com/cairndb/cairn/vfs"
)

// Files makes, opens and removes the table files of one store. Its fields are set
// before it is used, but for Private; its methods are safe for concurrent use.
type Files struct {
	FS    vfs.FS
	Dir   string
	Store base.ID

	Pages  *cache.Cache  // decoded pages of all tables
	Budget *arena.Budget // what point indexes are counted to
	Share  int64         // bytes point indexes may take

	Profile Profile
	Raw     func() int64       // bytes of keys and values in the store's tables
	Pressed func() bool        // whether commits have to wait for flushes; nil: they have not
	NewNum  func() uint64      // an unused file number
	PutBack func(num uint64)   // of a number that NewNum has returned, for whose file there is no space
	SyncDir func() error       // makes the directory's entries durable
	Unused  func(*tree.Handle) // called when nobody refers to a table any more

	NotRemoved func(path string) // is told of a file that nobody needs and that could not be removed; nil: nobody is

	// Private counts the tables that transactions write for themselves: bytes on disk of those that are not part of
	// the store, and what was ever written of puts and deletes, and of such tables.
	Private struct{ Bytes, Flushed, Merged atomic.Int64 }

	ahead    ahead
	hurry    atomic.Bool
	indexing atomic.Int64 // bytes promised to point indexes being built
}

// maxHelpers bounds the helpers of a writer: each has an encoder of a megabyte or two.
const maxHelpers = 4

// Hurry says that from now on somebody waits for the tables and nobody will read them:
// all processors compress, the last level as quickly as the others, and nothing is kept in memory.
func (f *Files) Hurry() { f.hurry.Store(true) }

// compressors returns how many helpers a writer has if all processors shall compress.
func compressors() int {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return min(n, maxHelpers)
	}
	return 0
}

// Path returns the name of a table's file.
func (f *Files) Path(num uint64) string {
	return base.FilePath(f.Dir, base.FileTable, num)
}

// Write runs a merge into new tables of a level and opens them, durable with their
// names. rows is how many one of them will have, about; 0 means that they get no
// point index. On an error no file is left.
func (f *Files) Write(m *compact.Merge, level int, rows uint64, effort Effort) ([]*tree.Handle, error) {
	return f.write(m, level, rows, 0, false, effort)
}

// WriteResident is Write for tables that will be read: their pages begin in memory, as
// far as there is room without evicting others. After Hurry it is the same as Write.
func (f *Files) WriteResident(m *compact.Merge, level int, rows uint64, effort Effort) ([]*tree.Handle, error) {
	if f.hurry.Load() {
		return f.Write(m, level, rows, Awaited)
	}
	return f.write(m, level, rows, 0, true, effort)
}

// WritePrivate is WriteResident for tables of level 0 that no edit names yet, and whose
// rows and tombstones all get the sequence global. Somebody waits for them. They are added to one of the counters of
// what was written.
func (f *Files) WritePrivate(m *compact.Merge, rows, global uint64, written *atomic.Int64) ([]*tree.Handle, error) {
	tables, err := f.write(m, 0, rows, global, !f.hurry.Load(), Awaited)
	written.Add(tree.SizeOf(tables))
	f.Private.Bytes.Add(tree.SizeOf(tables))
	return tables, err
}

// HasQuick reports whether Quick makes a difference: where the last level has a codec of its
// own, and tables fit into memory decoded. What is read from the device is better small.
func (f *Files) HasQuick() bool {
	return f.Profile == ProfileBalanced && f.Raw() <= f.Budget.Limit()/residentShare
}

// Hasty reports whether what is written to the last level with some effort is compressed as
// quickly as the other levels.
func (f *Files) Hasty(effort Effort) bool {
	return f.HasQuick() && (effort == Quick || effort == Idle || f.hurry.Load())
}

// CompressesWell reports whether the last level is compressed better than the others: not
// when somebody waits for Close.
func (f *Files) CompressesWell() bool {
	return f.Profile == ProfileBalanced && !(f.hurry.Load() && f.HasQuick())
}

func (f *Files) write(m *compact.Merge, level int, rows, global uint64, resident bool, effort Effort) ([]*tree.Handle, error) {
	var made []newFile
	done := finished{}
	defer func() { done.free(f.Pages) }()
	m.Create = func() (compact.Output, error) {
		file, err := f.nextFile(global == 0) // that of a segment's table is not for private runs
		if err != nil {
			return nil, err
		}
		made = append(made, file)
		out := f.newOutput(file, level, rows, resident, effort, done)
		if global != 0 {
			return unsequenced{out}, nil
		}
		return out, nil
	}
	metas, err := m.Run()
	for i := range metas {
		Resequence(&metas[i], global)
	}
	if err == nil && slices.ContainsFunc(made, func(file newFile) bool { return !file.named }) {
		err = f.SyncDir()
	}
	var tables []*tree.Handle
	for i := 0; i < len(metas) && err == nil; i++ {
		var h *tree.Handle
		if h, err = f.Open(&metas[i]); err == nil {
			done.attach(h)
			tables = append(tables, h)
		}
	}
	if err == nil {
		return tables, nil
	}
	for _, h := range tables {
		h.Reader.Close()
	}
	for _, file := range made {
		f.remove(file.num)
	}
	return nil, err
}

// unsequenced stores rows and tombstones with sequence 0.
type unsequenced struct{ compact.Output }

func (u unsequenced) Add(key []byte, _ uint64, kind base.Kind, value []byte) error {
	return u.Output.Add(key, 0, kind, value)
}

func (u unsequenced) AddRangeDelete(low, high []byte, _ uint64) error {
	return u.Output.AddRangeDelete(low, high, 0)
}

// Resequence gives everything in a table whose rows are stored with sequence 0 the
// sequence seq, unless that is 0.
func Resequence(m *base.TableMeta, seq uint64) {
	if seq != 0 {
		m.GlobalSeq, m.MinSeq, m.MaxSeq = seq, seq, seq
	}
}

// Open opens a table for reading. Its handle has no reference yet.
func (f *Files) Open(meta *base.TableMeta) (*tree.Handle, error) {
	return f.open(meta, table.Open)
}

// opener is table.Open, or table.OpenLazily.
type opener func(vfs.File, base.TableMeta, base.ID, string, *cache.Cache, *arena.Budget) (*table.Reader, error)

func (f *Files) open(meta *base.TableMeta, open opener) (*tree.Handle, error) {
	name := f.Path(meta.Num)
	file, err := f.FS.Open(name)
	if err != nil {
		return nil, f.why(fmt.Errorf("open table: %w", err))
	}
	r, err := open(file, *meta, f.Store, name, f.Pages, f.Budget)
	if err != nil {
		file.Close()
		return nil, f.why(err)
	}
	return &tree.Handle{Meta: meta, Reader: r, OnUnused: f.Unused}, nil
}

// why returns why a table could not be opened: err, unless its name leads to another directory by now, whose file is
// none of this store's.
func (f *Files) why(err error) error {
	if g, ok := f.FS.(vfs.Guard); ok {
		return cmp.Or(g.Check(), err)
	}
	return err
}

// OpenListed opens a table that the manifest or the log names; its index is read when it is
// needed.
func (f *Files) OpenListed(meta *base.TableMeta) (*tree.Handle, error) {
	h, err := f.open(meta, table.OpenLazily)
	if errors.Is(err, fs.ErrNotExist) {
		err = base.Corruptf(f.Path(meta.Num), -1, "the table is missing")
	}
	return h, err
}

// Tables are opened by one goroutine more for every openShare of them, up to moreOpeners: where they are
// cold, each waits for the disk three times. For a few that are not, goroutines cost more than they gain.
const (
	openShare   = 4
	moreOpeners = 15
)

// OpenAll is OpenListed for several tables. If one cannot be opened its error is returned,
// no more are begun, and what was opened is returned with it.
func (f *Files) OpenAll(metas []*base.TableMeta) (opened []*tree.Handle, err error) {
	handles, errs := make([]*tree.Handle, len(metas)), make([]error, len(metas))
	var next atomic.Int64
	var failed atomic.Bool
	open := func() {
		for i := int(next.Add(1)) - 1; i < len(metas) && !failed.Load(); i = int(next.Add(1)) - 1 {
			if handles[i], errs[i] = f.OpenListed(metas[i]); errs[i] != nil {
				failed.Store(true)
			}
		}
	}
	var others sync.WaitGroup
	for range min(len(metas)/openShare, moreOpeners) {
		others.Go(open)
	}
	open()
	others.Wait()
	opened = slices.DeleteFunc(handles, func(h *tree.Handle) bool { return h == nil })
	return opened, cmp.Or(errs...)
}

// remove removes a table's file, which nobody needs, or hands its name on.
func (f *Files) remove(num uint64) {
	if err := f.FS.Remove(f.Path(num)); err != nil && !errors.Is(err, fs.ErrNotExist) && f.NotRemoved != nil {
		f.NotRemoved(f.Path(num))
	}
}

// Discard closes and removes tables that no edit names.
func (f *Files) Discard(tables []*tree.Handle) {
	for _, h := range tables {
		h.Reader.Close()
		f.remove(h.Meta.Num)
	}
}
