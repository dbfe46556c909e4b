package memfs

import (
	"fmt"
	"slices"
	"sync"
)

// OpKind says what a mutation was.
type OpKind uint8

// The kinds of mutation.
const (
	OpCreate      OpKind = iota // a new file; Name
	OpMkdir                     // a new directory; Name
	OpLink                      // Name is another name of To
	OpRename                    // Name became To
	OpRemove                    // Name was removed
	OpWrite                     // Length bytes at Offset
	OpPreallocate               // Length bytes reserved at Offset
	OpSync                      // a file was synced
	OpSyncFailed                // a file's sync failed; see FS.FailSyncs
	OpSyncDir                   // a directory was synced
	OpTamper                    // a file was changed from outside; see FS.WriteFile
)

var opNames = [...]string{
	"create", "mkdir", "link", "rename", "remove", "write", "preallocate", "sync", "sync failed", "syncdir", "tamper",
}

// String returns the name of the kind.
func (k OpKind) String() string {
	if int(k) < len(opNames) {
		return opNames[k]
	}
	return fmt.Sprintf("OpKind(%d)", uint8(k))
}

// entry reports whether k changes names of a directory.
func (k OpKind) entry() bool { return k <= OpRemove }

// Op describes a mutation.
type Op struct {
	Ordinal        int    // index in the journal; negative if it is older than the journal
	Kind           OpKind // what it did
	Name           string // the path it was done to, as the caller gave it
	To             string // the second path of OpRename (new) and OpLink (old)
	Offset, Length int64  // in bytes, of OpWrite and OpPreallocate
}

// Entry reports whether the operation changes a directory (as opposed to a file's
// bytes). A pending one is lost or kept as a whole.
func (o Op) Entry() bool { return o.Kind.entry() }

// String renders the operation on one line, for messages.
func (o Op) String() string {
	s := fmt.Sprintf("%d: %s %s", o.Ordinal, o.Kind, o.Name)
	switch o.Kind {
	case OpRename, OpLink:
		s += fmt.Sprintf(" (%s)", o.To)
	case OpWrite, OpPreallocate:
		s += fmt.Sprintf(" [%d,+%d)", o.Offset, o.Length)
	}
	return s
}

// mutation is one record of the journal. It is immutable.
type mutation struct {
	kind        OpKind
	id          uint64 // the inode: of the file, or of what an entry leads to
	dir, dir2   uint64 // the directories of name and (rename only) name2
	name, name2 string
	off, n      int64
	data        []byte  // of a write
	after       content // of OpTamper
	path, path2 string  // for Op
}

func (m *mutation) op(ordinal int) Op {
	return Op{Ordinal: ordinal, Kind: m.kind, Name: m.path, To: m.path2, Offset: m.off, Length: m.n}
}

// markEvery is the distance, in mutations, of the points from which the journal
// can be replayed. A smaller one makes random access quicker, a larger one saves
// memory; going forward needs none.
const markEvery = 128

// Journal is the record of an FS's mutations and of what was pending when it
// began. Its methods are safe for concurrent use.
type Journal struct {
	fs *FS // that it is of
	mu struct {
		sync.Mutex
		ops   []*mutation
		marks []disk // marks[i] is the disk after i*markEvery mutations
		disk  disk   // the disk after `at` mutations
		at    int    // -1: nowhere yet
	}
}

// newJournal starts a journal at start, which it takes over.
func newJournal(f *FS, start disk) *Journal {
	j := &Journal{fs: f}
	j.mu.marks = []disk{start}
	j.mu.at = -1
	return j
}

// record is called under f.mu, before the change is made.
func (f *FS) record(m mutation) {
	f.notice()
	f.note(m)
}

func (f *FS) note(m mutation) {
	if f.journal == nil {
		return
	}
	f.journal.mu.Lock()
	defer f.journal.mu.Unlock()
	f.journal.mu.ops = append(f.journal.mu.ops, &m)
}

// Journal returns the journal that f records, nil after StopJournal.
func (f *FS) Journal() *Journal {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.journal
}

// StopJournal ends recording and forgets the journal: for long runs that never
// ask for a crash state, since the journal keeps every byte written.
func (f *FS) StopJournal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.journal = nil
}

// StartJournal starts a new journal. Everything present counts as durable.
func (f *FS) StartJournal() *Journal {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	f.journal = newJournal(f, f.settled())
	return f.journal
}

// TrimJournal replaces the journal by an empty one that starts now. What is pending
// stays pending, with negative ordinals. The old journal remains usable as it was.
func (f *FS) TrimJournal() *Journal {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notice()
	if f.journal != nil {
		f.journal = f.journal.rest()
	}
	return f.journal
}

func (j *Journal) rest() *Journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	length := len(j.mu.ops)
	j.seek(length)
	start := j.mu.disk.clone()
	for i := range start.pending {
		start.pending[i].ordinal -= length
	}
	start.forgetUnreachable()
	return newJournal(j.fs, start)
}

// Len returns the number of mutations so far. Crash points go from 0 (before the
// first) to Len (after the last).
func (j *Journal) Len() int {
	j.fs.look()()
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.mu.ops)
}

// Op returns the i-th mutation, 0 <= i < Len.
func (j *Journal) Op(i int) Op {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.ops[i].op(i)
}

// Pending returns the operations, in the order they were made, that a power cut
// after the first `at` mutations could undo. The index in this list is the i of
// DropOne and its like.
func (j *Journal) Pending(at int) []Op {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seek(at)
	ops := make([]Op, 0, len(j.mu.disk.pending))
	for _, p := range j.mu.disk.pending {
		op := p.m.op(p.ordinal)
		op.Offset, op.Length = p.off, p.n
		ops = append(ops, op)
	}
	return ops
}

// State returns a new FS that holds what choice says the disk held when power was
// cut after the first `at` mutations. It panics unless 0 <= at <= Len.
func (j *Journal) State(at int, choice Choice) *FS {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seek(at)
	return j.mu.disk.image(choice.fates(at, j.mu.disk.pending))
}

// seek moves j.mu.disk to the point after `at` mutations.
func (j *Journal) seek(at int) {
	if at < 0 || at > len(j.mu.ops) {
		panic(fmt.Sprintf("memfs: crash point %d outside the journal of %d mutations", at, len(j.mu.ops)))
	}
	if mark := min(at/markEvery, len(j.mu.marks)-1); j.mu.at < 0 || at < j.mu.at || mark*markEvery > j.mu.at {
		j.mu.disk, j.mu.at = j.mu.marks[mark].clone(), mark*markEvery
	}
	for j.mu.at < at {
		j.mu.disk.apply(j.mu.ops[j.mu.at], j.mu.at)
		j.mu.at++
		if j.mu.at == len(j.mu.marks)*markEvery {
			j.mu.marks = append(j.mu.marks, j.mu.disk.clone())
		}
	}
}

// Crash returns the image that choice leaves if power is cut now. The FS itself
// goes on unharmed. It panics if no journal is recorded.
func (f *FS) Crash(choice Choice) *FS {
	j := f.Journal()
	return j.State(j.Len(), choice)
}

// Ops returns every mutation so far.
func (j *Journal) Ops() []Op {
	j.fs.look()()
	j.mu.Lock()
	ops := slices.Clone(j.mu.ops)
	j.mu.Unlock()
	list := make([]Op, len(ops))
	for i, m := range ops {
		list[i] = m.op(i)
	}
	return list
}
