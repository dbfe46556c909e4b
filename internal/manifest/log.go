package manifest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// Bounds for Bloated.
const (
	bloatBytes = 256 << 10
	bloatRatio = 4
)

// fileUnit is what the length of a live manifest is a multiple of. A sync of bytes that
// overwrite others costs half of one that makes the file longer, and edits are short.
const fileUnit = 1024

// manifestRest is what stays free of the greatest size of a manifest for marks, a seal and
// edits that say little.
const manifestRest = 64 << 10

// confirmRoom is kept free of a live manifest while log segments are provisional, for the edit that
// says that they are not any more: commits wait for it that are on the disk already.
const confirmRoom = frame.HeaderBytes + 32

// maxPartBytes is the payload of the longest frame; an edit longer than that has several.
const maxPartBytes = frame.MaxShortBytes - frame.HeaderBytes

// Log is the live manifest of a store: the file edits are appended to.
//
// Edits have ordinals: the snapshot a log begins with is 1 (Rotate goes on
// counting), each Append is one more.
type Log struct {
	fsys  vfs.FS
	dir   string
	name  string
	id    frame.Identity
	parts int // greatest payload of a frame; smaller in tests

	// Published; written with mu held.
	state    atomic.Pointer[State]
	last     atomic.Uint64 // ordinal of the last edit
	sealed   atomic.Uint64 // edits up to this ordinal have a synced mark behind them
	off      atomic.Int64  // where the next frame goes
	snapshot int64         // bytes of the file when it was made

	mu struct {
		sync.Mutex
		f      vfs.File // nil once closed
		room   int64    // length of the file; from off on it is zero
		sum    uint32   // header checksum of the last frame
		before uint64   // ordinals used up by earlier manifests of this log
		synced mark     // how much is known durable
		rested *Version // of the first state without a log segment behind which one was recorded; later ones have its tables, too
		broken error    // matches base.ErrPoisoned or base.ErrClosed; refuses everything
	}
}

// mark is a place in a manifest: behind which edit, and at which offset.
type mark struct {
	ordinal uint64
	off     int64
}

// CreateWhen makes MANIFEST-num, whose snapshot is the given edit applied to an empty
// state, and makes CURRENT name it, after a call of ready, if that is not nil. num must not be the number of any file in the
// directory (FirstFreeNum). The snapshot must have a log segment, so that a
// manifest cut short can be told from a store without a log; a store that has
// none is made by CreateSealed.
//
// On an error that does not match base.ErrPoisoned, that of ready included, nothing has changed and nothing
// is left behind, but for what cannot be removed, which the next Open does. One that does leaves open which manifest CURRENT names.
func CreateWhen(ready func() error, fsys vfs.FS, dir string, store base.ID, num uint64, snapshot *Edit) (*Log, error) {
	s, err := firstState(dir, store, num, snapshot)
	if err != nil {
		return nil, err
	}
	if len(s.Segments) == 0 {
		return nil, fmt.Errorf("manifest: a snapshot without a log segment has to be sealed")
	}
	return create(ready, fsys, dir, s, 0, maxPartBytes)
}

// CreateSealed makes a manifest like CreateWhen, complete and sealed from the start,
// for a store that has no log: Recover finds it clean. The snapshot must not have
// log segments.
func CreateSealed(fsys vfs.FS, dir string, store base.ID, num uint64, snapshot *Edit) error {
	s, err := firstState(dir, store, num, snapshot)
	if err != nil {
		return err
	}
	if len(s.Segments) > 0 {
		return fmt.Errorf("manifest: a sealed snapshot has log segments")
	}
	f := newFile(s, maxPartBytes)
	f.seal()
	return f.installWhole(fsys, dir)
}

// CreateToReplay makes a manifest like CreateWhen, to which nothing is appended, of a store whose log is
// still to be replayed, and returns its state. unnamed are log segments behind those of the snapshot that may be
// missing (State.MayBeMissing): an edit of their own records them, so they still may be. All of it is durable, and
// marked so, before CURRENT names the manifest.
func CreateToReplay(fsys vfs.FS, dir string, store base.ID, num uint64, snapshot *Edit, unnamed []Segment) (*State, error) {
	s, err := firstState(dir, store, num, snapshot)
	if err != nil {
		return nil, err
	}
	f := newFile(s, maxPartBytes)
	if len(unnamed) > 0 {
		edit := &Edit{Segments: unnamed}
		if s, err = s.Apply(edit); err != nil {
			return nil, base.Locate(err, f.path(dir), -1)
		}
		f.append(frame.KindEdit, 2, edit.Append(nil))
		f.append(frame.KindMark, 2, nil)
	}
	if len(s.Segments) == 0 {
		return nil, fmt.Errorf("manifest: there is no log segment to replay")
	}
	return s, f.installWhole(fsys, dir)
}

func firstState(dir string, store base.ID, num uint64, snapshot *Edit) (*State, error) {
	s := NewState(store)
	s.Manifest = num
	s.NextFileNum = num + 1
	s, err := s.Apply(snapshot)
	return s, base.Locate(err, base.FilePath(dir, base.FileManifest, num), -1)
}

func create(ready func() error, fsys vfs.FS, dir string, s *State, before uint64, parts int) (*Log, error) {
	file := newFile(s, parts)
	l := &Log{fsys: fsys, dir: dir, name: file.path(dir), id: file.id, parts: parts, snapshot: int64(len(file.buf))}
	l.mu.room = wholeUnits(l.snapshot + confirmRoom)
	file.buf = append(file.buf, make([]byte, l.mu.room-l.snapshot)...)
	f, err := file.install(ready, fsys, dir)
	if err != nil {
		return nil, err
	}
	l.mu.f, l.mu.sum, l.mu.before = f, file.sum, before
	l.state.Store(s)
	l.off.Store(l.snapshot)
	l.last.Store(before + 1)
	l.mu.synced = mark{before + 1, l.snapshot}
	l.sealed.Store(before + 1) // CURRENT is the mark behind the snapshot
	return l, nil
}

// Append validates an edit against the state, writes it and syncs it, and returns
// its ordinal. Errors: a *base.CorruptionError if the edit breaks an invariant and
// one matching base.ErrNoSpace if there is no room, both before anything was
// written, so that the log goes on; base.ErrPoisoned if the outcome is unknown,
// after which every call fails.
func (l *Log) Append(e *Edit) (ordinal uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(e, true)
}

// AppendUnsynced is Append of an edit that a power cut may take away: it is in the operating
// system's hands only, until the next Append, or Sync.
func (l *Log) AppendUnsynced(e *Edit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.append(e, false)
	return err
}

// Sync makes all edits durable. Errors are those of Append.
func (l *Log) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.broken != nil {
		return l.mu.broken
	}
	return l.sync(l.last.Load())
}

// sync makes durable what is written, the edit of that ordinal being the last one.
func (l *Log) sync(ordinal uint64) error {
	if l.mu.synced.off == l.off.Load() {
		return nil
	}
	if err := l.mu.f.Sync(); err != nil {
		return l.breakOff("sync of "+l.name, err)
	}
	l.mu.synced = mark{ordinal, l.off.Load()}
	return nil
}

func (l *Log) append(e *Edit, sync bool) (uint64, error) {
	if l.mu.broken != nil {
		return 0, l.mu.broken
	}
	if e.unknown {
		return 0, fmt.Errorf("%w: an edit has fields unknown to this build", base.ErrFormatTooNew)
	}
	next, err := l.State().Apply(e)
	if err != nil {
		return 0, base.Locate(err, l.name, -1)
	}
	ordinal := l.last.Load() + 1
	if err := l.write(frame.KindEdit, e.Append(nil), next, sync); err != nil {
		return 0, err
	}
	if len(l.State().Segments) == 0 && len(next.Segments) > 0 && !l.restShows() {
		l.mu.rested = l.State().Version
	}
	l.state.Store(next)
	l.last.Store(ordinal)
	return ordinal, nil
}

// Mark makes SealedThrough cover all edits that are synced, writing and syncing a mark if needed.
// Errors are those of Append.
func (l *Log) Mark() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.broken != nil {
		return l.mu.broken
	}
	if l.sealed.Load() == l.mu.synced.ordinal {
		return nil
	}
	return l.write(frame.KindMark, nil, l.State(), true)
}

// Seal ends the manifest of a store that is being closed: it appends the final
// edit, synced, which has to leave no live log segment, unless it says nothing new, and a
// seal, and closes the file. The seal is not synced: where a power cut takes it away the
// next Open finds the same store, only not clean.
// Errors are those of Append; room for edit and seal is reserved before either is
// written.
func (l *Log) Seal(final *Edit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, _, err := l.final(final)
	if err == nil {
		err = l.writeEnd(e)
	}
	if err != nil {
		return err
	}
	return l.end()
}

// Rested reports whether the store has come to rest in this manifest, was written to again, and still has the tables that it
// had then: a manifest that is cut where it rested looks like that of a store to which nothing was committed since. A
// table that has gone would be missed.
func (l *Log) Rested() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restShows()
}

// restShows reports whether rested is a state that a cut may lead to unseen.
func (l *Log) restShows() bool { return l.mu.rested != nil && l.State().Version.hasAll(l.mu.rested) }

// SealAnew is Seal in a new manifest, MANIFEST-num, sealed at birth, which no damage can shorten without being seen. The file
// of this one is garbage then, whatever closing it says. On an error that does not match base.ErrPoisoned nothing has changed.
func (l *Log) SealAnew(num uint64, final *Edit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, next, err := l.final(final)
	if err != nil {
		return err
	}
	next.Manifest, next.NextFileNum = num, max(next.NextFileNum, num+1)
	f := newFile(next, l.parts)
	f.seal()
	open, err := f.install(nil, l.fsys, l.dir)
	if errors.Is(err, base.ErrPoisoned) {
		l.mu.broken = err
	}
	if err != nil {
		return err
	}
	l.sealed.Store(l.last.Load())
	_ = l.end() // what CURRENT names is durable
	if err := open.Close(); err != nil {
		return poisoned("close of "+f.path(l.dir), err)
	}
	return nil
}

// final returns what is new in a final edit, and the state behind it, which has no log segment.
func (l *Log) final(final *Edit) (*Edit, *State, error) {
	if l.mu.broken != nil {
		return nil, nil, l.mu.broken
	}
	e := *final
	e.omitKnown(l.State())
	next, err := l.State().Apply(&e)
	if err != nil {
		return nil, nil, base.Locate(err, l.name, -1)
	}
	if len(next.Segments) > 0 {
		return nil, nil, fmt.Errorf("manifest: sealed with %d live log segments", len(next.Segments))
	}
	return &e, next, nil
}

// end gives up the file of a manifest that is sealed.
func (l *Log) end() error {
	l.mu.broken = fmt.Errorf("%w: the manifest is sealed", base.ErrClosed)
	return l.closeFile()
}

// omitKnown drops what would change nothing in s: of the numbers, which only grow, and the report.
func (e *Edit) omitKnown(s *State) {
	for _, n := range []struct {
		edit  *uint64
		state uint64
	}{{&e.LogStart, s.LogStart}, {&e.NextFileNum, s.NextFileNum}, {&e.LastSeq, s.LastSeq}} {
		if *n.edit <= n.state {
			*n.edit = 0
		}
	}
	if e.Dropped != nil && *e.Dropped == s.Dropped {
		e.Dropped = nil
	}
}

// writeEnd writes and syncs the final edit, unless it changes nothing, and writes the seal.
func (l *Log) writeEnd(e *Edit) error {
	n := frame.HeaderBytes
	if payload := e.Append(nil); len(payload) > 0 {
		n += groupBytes(len(payload), l.parts)
	}
	if err := l.reserve(l.off.Load() + int64(n)); err != nil {
		return unchanged("reservation in "+l.name, err)
	}
	if n > frame.HeaderBytes {
		if _, err := l.append(e, true); err != nil {
			return err
		}
	}
	if err := l.sync(l.last.Load()); err != nil {
		return err
	}
	if err := l.write(frame.KindSeal, nil, l.State(), false); err != nil { // what it speaks of is durable
		return err
	}
	l.sealed.Store(l.last.Load())
	return nil
}

// Rotate makes a new manifest of the present state, as CreateWhen does, and returns
// its log, in which ordinals go on: the snapshot has the next one, and all before
// are sealed. This log is closed then, and its file is garbage. On an error that
// does not match base.ErrPoisoned nothing has changed.
func (l *Log) Rotate(num uint64) (*Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.broken != nil {
		return nil, l.mu.broken
	}
	s := *l.State()
	s.Manifest = num
	s.NextFileNum = max(s.NextFileNum, num+1)
	next, err := create(nil, l.fsys, l.dir, &s, l.last.Load(), l.parts)
	if errors.Is(err, base.ErrPoisoned) {
		l.mu.broken = err
	}
	if err != nil {
		return nil, err
	}
	l.mu.broken = fmt.Errorf("%w: the manifest was replaced", base.ErrClosed)
	return next, l.closeFile()
}

// Close gives up the file without sealing it. It is idempotent.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.broken == nil {
		l.mu.broken = fmt.Errorf("%w: manifest", base.ErrClosed)
	}
	return l.closeFile()
}

func (l *Log) closeFile() error {
	if l.mu.f == nil {
		return nil
	}
	f := l.mu.f
	l.mu.f = nil
	return f.Close()
}

// State returns the state after the last edit.
func (l *Log) State() *State { return l.state.Load() }

// SealedThrough returns the ordinal of the last edit behind which a later, synced
// record carries a mark. Files that edits up to it made obsolete may be removed.
func (l *Log) SealedThrough() uint64 { return l.sealed.Load() }

// Size returns the bytes written to the file.
func (l *Log) Size() int64 { return l.off.Load() }

// Bloated reports whether the file has grown so far beyond its snapshot that a
// new manifest is due (Rotate).
func (l *Log) Bloated() bool {
	size := l.Size()
	if size > maxManifestBytes/2 && size-l.snapshot > (maxManifestBytes-l.snapshot)/2 {
		return true // half of what it may grow by
	}
	return size > bloatBytes && size > bloatRatio*l.snapshot
}

// tooLarge is what a manifest says that would be larger than Recover reads.
func tooLarge(name string, bytes int64) error {
	return fmt.Errorf("%w: %s would have %d bytes, more than the %d that are read: there are too many tables with too long keys", base.ErrLimit, name, bytes, maxManifestBytes)
}

// write appends one group of frames, after which the manifest says next, and syncs it if asked to:
// then what was synced before is sealed.
func (l *Log) write(kind frame.Kind, payload []byte, next *State, sync bool) error {
	off, before, ordinal := l.off.Load(), l.mu.synced, l.last.Load()
	if kind == frame.KindEdit {
		ordinal++
	}
	g := group{id: l.id, sum: l.mu.sum, durable: uint64(before.off), ordinal: ordinal - l.mu.before, parts: l.parts}
	b := g.append(nil, off, kind, payload)
	end, room := off+int64(len(b)), l.mu.room
	if end > maxManifestBytes-manifestRest && len(payload) > manifestRest/16 {
		return tooLarge(l.name, end)
	}
	keep := int64(0)
	if next.FirstProvisional() != 0 {
		keep = confirmRoom
	}
	if err := l.reserve(end + keep); err != nil {
		return unchanged("reservation in "+l.name, err)
	}
	if l.mu.room > room {
		b = append(b, make([]byte, l.mu.room-end)...)
	}
	if _, err := l.mu.f.WriteAt(b, off); err != nil {
		return l.breakOff("write to "+l.name, err)
	}
	l.mu.sum = g.sum
	l.off.Store(end)
	if !sync {
		return nil
	}
	if err := l.sync(ordinal); err != nil {
		return err
	}
	l.sealed.Store(before.ordinal)
	return nil
}

func (l *Log) breakOff(what string, err error) error {
	l.mu.broken = poisoned(what, err)
	return l.mu.broken
}

// reserve makes sure that the bytes up to end have room, or fails while the frames
// still end, as far as readers can tell, where they do.
func (l *Log) reserve(end int64) error {
	if end <= l.mu.room {
		return nil
	}
	n := wholeUnits(end) - l.mu.room
	err := l.mu.f.Preallocate(l.mu.room, n)
	if errors.Is(err, errors.ErrUnsupported) {
		_, err = l.mu.f.WriteAt(make([]byte, n), l.mu.room)
	}
	if err == nil {
		l.mu.room += n
	}
	return err
}

func wholeUnits(n int64) int64 { return (n + fileUnit - 1) / fileUnit * fileUnit }

// group encodes an edit, mark or seal as frames.
type group struct {
	id      frame.Identity
	sum     uint32 // of the frame before; after append of the last one
	durable uint64
	ordinal uint64
	parts   int
}

// groupParts returns how many frames a payload of n bytes takes.
func groupParts(n, parts int) int { return (max(n, 1)-1)/parts + 1 }

// groupBytes returns the length of a group with a payload of n bytes.
func groupBytes(n, parts int) int {
	whole := groupParts(n, parts) - 1
	return whole*frame.PaddedBytes(parts) + frame.PaddedBytes(n-whole*parts)
}

// append appends the frames of one group that begins at offset off of the file.
func (g *group) append(dst []byte, off int64, kind frame.Kind, payload []byte) []byte {
	for rest := groupParts(len(payload), g.parts); rest > 0; rest-- {
		part := payload[:min(len(payload), g.parts)]
		payload = payload[len(part):]
		start := len(dst)
		dst = append(dst, make([]byte, frame.PaddedBytes(len(part)))...)
		b := dst[start:]
		copy(b[frame.HeaderBytes:], part)
		h := frame.Put(b, g.id, off, len(part), frame.Header{
			Kind: kind, Prev: g.sum, Seq: g.ordinal, Durable: g.durable, Count: uint32(rest - 1),
		})
		g.sum = h.Sum
		off += int64(len(b))
	}
	return dst
}

// file is a new manifest in memory.
type file struct {
	current
	id  frame.Identity
	buf []byte
	sum uint32
}

// newFile encodes header and snapshot of a manifest of the given state.
func newFile(s *State, parts int) *file {
	f := &file{current: current{Manifest: s.Manifest, File: base.NewID(), Store: s.Store}}
	f.encode(s, parts)
	return f
}

func (f *file) encode(s *State, parts int) {
	f.id = frame.NewIdentity(f.File)
	f.buf = base.AppendFileHeader(nil, base.FileHeader{
		Type: base.FileManifest, Version: base.FormatVersion, File: f.File, Store: f.Store, Num: f.Manifest,
	})
	g := group{id: f.id, ordinal: 1, parts: parts}
	f.buf = g.append(f.buf, int64(len(f.buf)), frame.KindEdit, s.Snapshot().Append(nil))
	f.sum = g.sum
}

// seal ends a file that is not on disk yet.
func (f *file) seal() { f.append(frame.KindSeal, 1, nil) }

// append appends a group to a file that is not on disk yet. Its mark is its own offset: nobody sees it before all
// of the file is durable.
func (f *file) append(kind frame.Kind, ordinal uint64, payload []byte) {
	off := int64(len(f.buf))
	g := group{id: f.id, sum: f.sum, durable: uint64(off), ordinal: ordinal, parts: maxPartBytes}
	f.buf = g.append(f.buf, off, kind, payload)
	f.sum = g.sum
}

func (f *file) path(dir string) string {
	return base.FilePath(dir, base.FileManifest, f.Manifest)
}

// install makes the file and its name durable, then, when ready returns, makes CURRENT name it, and
// returns the file open. If it fails while CURRENT cannot name it yet, the file is
// removed. What is to be CURRENT is written before the file is synced, so that the file system's journal takes
// along both new files at once.
func (f *file) install(ready func() error, fsys vfs.FS, dir string) (vfs.File, error) {
	name := f.path(dir)
	if n := int64(len(f.buf)); n > maxManifestBytes-manifestRest {
		return nil, tooLarge(name, n)
	}
	open, err := startFile(fsys, name, f.buf)
	if err != nil {
		return nil, err
	}
	next, err := f.current.candidate(fsys, dir, f.Manifest)
	if err != nil {
		open.Close()
		fsys.Remove(name)
		return nil, err
	}
	if err = syncFile(open, name); err == nil {
		err = next.sync()
	}
	if err == nil {
		err = syncNames(fsys, dir)
	}
	if err == nil && ready != nil {
		err = ready()
	}
	if err != nil {
		next.drop()
	} else if err = next.install(); err == nil {
		return open, nil
	} else if errors.Is(err, base.ErrPoisoned) {
		open.Close() // CURRENT may name it
		return nil, err
	}
	open.Close()
	fsys.Remove(name)
	return nil, err
}

// installWhole is install of a file to which nothing is appended.
func (f *file) installWhole(fsys vfs.FS, dir string) error {
	open, err := f.install(nil, fsys, dir)
	if err != nil {
		return err
	}
	if err := open.Close(); err != nil {
		return poisoned("close of "+f.path(dir), err) // CURRENT names it
	}
	return nil
}

// syncNames makes the names in a directory durable which CURRENT does not need yet.
func syncNames(fsys vfs.FS, dir string) error {
	err := fsys.SyncDir(dir)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, vfs.ErrNotAttempted):
		return unchanged("sync of directory "+dir, err)
	}
	return poisoned("sync of directory "+dir, err)
}
