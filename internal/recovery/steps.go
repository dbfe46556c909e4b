package recovery

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/directory"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
)

// runInSteps replays the log where there is not the space for tables of all of it: what an
// interrupted flush or merge has left is removed first, and what was put aside (it may have taken the last
// block, so what needs no new manifest for that goes before there is one), and then each memtable becomes a table of
// its own, is recorded, and its log removed before the next one does. So there has to be space for
// one, as the running store puts it aside; a store that was killed on a full disk can be opened
// again. What is recorded stays, whatever becomes of the rest: a prefix of the log is in tables, and
// the log begins behind it, as after a flush. The log is looked at as a whole before: damage in it
// changes nothing.
func (r *Log) runInSteps(names []string) error {
	kept, err := r.look(names)
	if err != nil {
		return err
	}
	logged := func(t base.FileType, num uint64) bool { return t == base.FileTable && kept(num) }
	earlierNeeds := manifest.EarlierNeeds(names, r.State)
	earlier := func(t base.FileType, num uint64) bool { return logged(t, num) || earlierNeeds(t, num) }
	if err := r.clean(names, earlier); err != nil { // else there may not be the space for a manifest
		return err
	}
	if len(r.State.Segments) == 0 { // there is no log: a manifest is all that is to be made
		return r.run(names)
	}
	if err := r.record(); err != nil { // what the manifest says is durable then
		return err
	}
	later := func(t base.FileType, num uint64) bool {
		return logged(t, num) || t == base.FileLog && num >= r.State.LogStart
	}
	if err := r.clean(names, later); err != nil {
		return err
	}
	r.inSteps, r.Together = true, 0
	return r.run(names)
}

func (r *Log) clean(names []string, needed func(t base.FileType, num uint64) bool) error {
	return directory.Clean(r.FS, r.Dir, r.State, names, needed)
}

// look replays the log without writing, and returns which tables it may name, by number: also in frames
// that are void, since what says so need not be durable.
func (r *Log) look(names []string) (kept func(num uint64) bool, err error) {
	progress := r.Progress
	r.ReadOnly, r.Progress, r.named = true, func(int64, int64) {}, map[uint64]bool{}
	defer func() { r.ReadOnly, r.Progress = false, progress }()
	err = r.run(names)
	r.dropLayers()
	named, any := r.named, r.anyNamed
	r.forget()
	return func(num uint64) bool { return any || named[num] }, err
}

// noteNamed notes the tables that any whole frame names, all where not every frame was looked at.
func (r *Log) noteNamed() {
	for _, s := range slices.Concat(r.segments, r.strays) {
		all := s.EachWhole(frame.KindIngest, func(payload []byte) {
			if edit, err := manifest.DecodeEdit(payload); err == nil {
				for _, a := range edit.Added {
					r.named[a.Table.Num] = true
				}
			}
		})
		r.anyNamed = r.anyNamed || !all
	}
}

// record makes a manifest of the state so far, in which the log begins with the last segment of which
// a frame was replayed (not with one behind its end, where the next Open would not notice that
// something is missing), and removes the one before it and the segments that are not needed any more.
func (r *Log) record() error {
	before := r.State
	edit := before.Snapshot()
	edit.LogStart = max(edit.LogStart, r.current)
	if n := before.Tail.Bytes; n > 0 { // this one tells what was dropped of the one before
		dropped := before.Dropped.More(uint64(n))
		edit.Dropped = &dropped
	}
	var unnamed []manifest.Segment
	edit.Segments, unnamed = r.split(edit)
	num := r.NewNum()
	edit.NextFileNum = r.NextFileNum()
	state, err := manifest.CreateToReplay(r.FS, r.Dir, r.Store, num, edit, unnamed)
	if err != nil {
		return err
	}
	r.State = state
	r.Opened, r.Written = append(r.Opened, r.Written...), nil // CURRENT names them
	gone := []string{base.FileName(base.FileManifest, before.Manifest)}
	for _, seg := range before.Segments {
		if seg.Num < r.State.LogStart {
			gone = append(gone, base.FileName(base.FileLog, seg.Num))
		}
	}
	for _, name := range gone {
		err := r.FS.Remove(filepath.Join(r.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a provisional segment may be missing
			return err
		}
	}
	return nil
}

// split divides the segments of a snapshot that are still needed into those whose names are known to be durable, and those
// whose names are not. A file that is there proves nothing: a sync of the directory that failed may be why the process
// before this one ended, and one that succeeds now says nothing of what that has lost (E6).
func (r *Log) split(snapshot *manifest.Edit) (named, unnamed []manifest.Segment) {
	for _, seg := range snapshot.Segments {
		switch {
		case seg.Num < snapshot.LogStart:
		case r.found.MayBeMissing(seg.Num):
			unnamed = append(unnamed, seg)
		default:
			named = append(named, seg)
		}
	}
	return named, unnamed
}

// forget makes r what it was before it ran.
func (r *Log) forget() {
	for _, h := range r.Opened {
		h.Reader.Close()
	}
	*r = Log{
		FS: r.FS, Dir: r.Dir, Store: r.Store, ReadOnly: r.ReadOnly, Arenas: r.Arenas, Tables: r.Tables,
		FreeMemory: r.FreeMemory, WriteMemory: r.WriteMemory, Withdraw: r.Withdraw, Together: r.Together,
		NewNum: r.NewNum, NextFileNum: r.NextFileNum, Progress: r.Progress, State: r.found, found: r.found,
	}
}
