package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// maxManifestBytes bounds what Recover reads into memory, and so what is written; less in
// tests.
var maxManifestBytes int64 = 1 << 30

// maxReads bounds how often a read-only Recover tries to get a consistent look at
// a manifest somebody is appending to or replacing.
const maxReads = 8

// Recover reads the state of the store in dir; it changes nothing. If there is no
// store the error matches fs.ErrNotExist. Damage is a *base.CorruptionError, a
// newer format matches base.ErrFormatTooNew; with readOnly false so does a
// manifest with optional fields this build would lose.
//
// With readOnly true another process may be writing: what it appends or replaces
// meanwhile is seen or not, but never taken for damage.
func Recover(fsys vfs.FS, dir string, readOnly bool) (*State, error) {
	if !readOnly {
		s, _, err := recoverOnce(fsys, dir)
		if err == nil && s.unknown {
			return nil, fmt.Errorf("%w: the manifest in %s has fields this build would lose by writing", base.ErrFormatTooNew, dir)
		}
		return s, err
	}
	var seen []byte
	for range maxReads - 1 {
		s, bytesRead, err := recoverOnce(fsys, dir)
		if err == nil || bytesRead != nil && bytes.Equal(bytesRead, seen) {
			return s, err
		}
		seen = bytesRead
	}
	s, _, err := recoverOnce(fsys, dir)
	return s, err
}

// recoverOnce also returns the bytes on which its answer rests.
func recoverOnce(fsys vfs.FS, dir string) (*State, []byte, error) {
	c, err := readCurrent(fsys, dir)
	if err != nil {
		return nil, nil, err
	}
	name := base.FilePath(dir, base.FileManifest, c.Manifest)
	buf, err := readFile(fsys, name, maxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, base.Corruptf(name, -1, "the manifest that CURRENT names is missing")
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := decode(buf, name, c)
	return s, buf, err
}

// decode returns the state a manifest describes; c is what CURRENT says of it.
func decode(buf []byte, name string, c current) (*State, error) {
	h, err := base.DecodeFileHeader(buf, base.FileManifest, name)
	if err != nil {
		return nil, err
	}
	if h.File != c.File || h.Store != c.Store || h.Num != c.Manifest {
		return nil, base.Corruptf(name, 16, "file %x of store %x, number %d, is not the one CURRENT names", h.File, h.Store, h.Num)
	}
	r := &replay{
		name: name, fold: newFold(c.Store),
		walk: frame.Walker{ID: frame.NewIdentity(h.File), Buf: buf, Off: base.FileHeaderBytes},
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	s, err := r.fold.finish()
	if err != nil {
		return nil, r.locate(err, r.end)
	}
	s.Manifest = c.Manifest
	s.NextFileNum = max(s.NextFileNum, c.Manifest+1)
	s.firstNum = max(s.firstNum, c.Manifest+1)
	return s, nil
}

// replay walks the frames of one manifest and folds its edits.
type replay struct {
	name string
	walk frame.Walker
	fold *fold

	ordinal uint64 // of the last whole edit
	end     int64  // offset behind the last whole group
	pending []byte // parts of an edit that is not whole yet
	more    uint32 // how many parts are to follow; 0: none is pending
	sealed  bool
}

func (r *replay) run() error {
	r.end = r.walk.Off
	for {
		at := r.walk.Off
		h, payload, ok := r.walk.Next()
		if !ok {
			return r.finish()
		}
		if err := r.check(h, payload, at); err != nil {
			return err
		}
		if err := r.take(h, payload); err != nil {
			return r.locate(err, at)
		}
	}
}

// check refuses an intact frame that cannot stand where it does.
func (r *replay) check(h frame.Header, payload []byte, at int64) error {
	ordinal := r.ordinal
	if h.Kind == frame.KindEdit {
		ordinal++
	}
	switch {
	case r.sealed:
		return base.Corruptf(r.name, at, "a frame stands behind the seal")
	case h.Kind != frame.KindEdit && h.Kind != frame.KindMark && h.Kind != frame.KindSeal:
		return base.Corruptf(r.name, at, "frame of kind %d in a manifest", h.Kind)
	case h.Seq != ordinal || ordinal == 0:
		return base.Corruptf(r.name, at, "frame of kind %d has ordinal %d after edit %d", h.Kind, h.Seq, r.ordinal)
	case h.Durable > uint64(at):
		return base.Corruptf(r.name, at, "durable mark %d is behind the frame", h.Durable)
	case r.more > 0 && (h.Kind != frame.KindEdit || h.Count != r.more-1):
		return base.Corruptf(r.name, at, "edit %d lacks %d parts", ordinal, r.more)
	case h.Kind != frame.KindEdit && (h.Count != 0 || len(payload) != 0):
		return base.Corruptf(r.name, at, "mark or seal has content")
	}
	return nil
}

func (r *replay) take(h frame.Header, payload []byte) error {
	switch {
	case h.Kind == frame.KindEdit && (h.Count > 0 || r.more > 0):
		r.pending = append(r.pending, payload...)
		r.more = h.Count
		if r.more > 0 {
			return nil
		}
		payload, r.pending = r.pending, nil
		fallthrough
	case h.Kind == frame.KindEdit:
		e, err := DecodeEdit(payload)
		if err == nil {
			err = r.fold.apply(e)
		}
		if err != nil {
			return err
		}
		r.ordinal++
	case h.Kind == frame.KindSeal:
		r.sealed = true
	}
	r.end = r.walk.Off
	return nil
}

// finish judges what stands where the chain ends.
func (r *replay) finish() error {
	if r.ordinal == 0 {
		return base.Corruptf(r.name, r.walk.Off, "the snapshot is damaged")
	}
	tail := r.walk.Tail()
	if tail.Durable > uint64(r.walk.Off) {
		return base.Corruptf(r.name, r.walk.Off, "damaged frame, though a later one says that bytes up to %d were synced", tail.Durable)
	}
	if n := r.walk.Off - r.end + tail.Bytes; n > 0 {
		r.fold.state.Tail = Tail{Bytes: n, From: r.end}
	}
	length := int64(len(r.walk.Buf))
	whole := length == r.walk.Off || length%fileUnit == 0 // of any other length is a file that was cut
	r.fold.state.Clean = r.sealed && tail.Bytes == 0 && whole
	r.fold.state.whole = r.fold.state.Clean && r.ordinal == 1
	return nil
}

// locate adds the place to an error that has none yet.
func (r *replay) locate(err error, at int64) error {
	if errors.Is(err, base.ErrCorrupt) {
		return base.Locate(err, r.name, at)
	}
	return fmt.Errorf("%s at offset %d: %w", r.name, at, err)
}
