package crashtest

import (
	"bytes"
	"path"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs/memfs"
)

// place is where a commit's frame stands.
type place struct {
	file     string
	off, end int64
	seq      uint64 // last sequence
}

// logFile is a log segment's bytes.
type logFile struct {
	name string
	buf  []byte
	id   frame.Identity
}

// logFiles returns the log segments of a file system that have an intact header.
func logFiles(fsys *memfs.FS) (files []logFile) {
	names, _ := fsys.List(Dir)
	for _, name := range names {
		if t, _ := base.ParseFileName(name); t != base.FileLog {
			continue
		}
		full := path.Join(Dir, name)
		buf, err := fsys.ReadFile(full)
		if err != nil {
			continue
		}
		if h, err := base.DecodeFileHeader(buf, base.FileLog, name); err == nil {
			files = append(files, logFile{full, buf, frame.NewIdentity(h.File)})
		}
	}
	return files
}

// walk returns the walker behind the chain of intact frames, calling each for them.
func (l *logFile) walk(each func(h frame.Header, off int64)) *frame.Walker {
	w := &frame.Walker{ID: l.id, Buf: l.buf, Off: base.FileHeaderBytes}
	if len(l.buf) < base.FileHeaderBytes {
		return w
	}
	if h, _, ok := frame.Decode(l.buf[w.Off:], l.id, w.Off); ok {
		w.Sum = h.Prev // the first one's is that of another file
	}
	for {
		off := w.Off
		h, _, ok := w.Next()
		if !ok {
			return w
		}
		if each != nil {
			each(h, off)
		}
	}
}

// frames returns the places of all commits in the logs of an image.
func frames(fsys *memfs.FS) (places []place) {
	for _, l := range logFiles(fsys) {
		l.walk(func(h frame.Header, off int64) {
			if h.Kind == frame.KindCommit || h.Kind == frame.KindIngest {
				places = append(places, place{l.name, off, off + int64(h.Length), h.Seq + uint64(h.Count) - 1})
			}
		})
	}
	return places
}

// hasHole reports whether an intact frame stands behind the end of the chain in
// some log segment.
func hasHole(files []logFile) bool {
	for _, l := range files {
		l.buf = withoutReserved(l.buf)
		w := l.walk(nil)
		if w.Tail().Headers == 0 {
			continue
		}
		for off := w.Off; off < int64(len(l.buf)); off += frame.Align {
			if _, _, ok := frame.Decode(l.buf[off:], l.id, off); ok {
				return true
			}
		}
	}
	return false
}

// withoutReserved returns buf without the pages of zeros at its end, but for one: with that a frame that stands at its end is
// whole, of which a few bytes are zero. Most of a segment is space that is only reserved.
func withoutReserved(buf []byte) []byte {
	n := len(buf)
	for n > 0 {
		page := buf[(n-1)/len(zeroPage)*len(zeroPage) : n]
		if !bytes.Equal(page, zeroPage[:len(page)]) {
			break
		}
		n -= len(page)
	}
	return buf[:min(len(buf), n+len(zeroPage))]
}

var zeroPage [4096]byte

// headless reports whether a frame has gone ahead in some log segment: there are bytes of it, or
// frames behind it, but no header, which is written last.
func headless(fsys *memfs.FS) bool {
	return slices.ContainsFunc(logFiles(fsys), func(l logFile) bool {
		end := min(l.walk(nil).Off, int64(len(l.buf)))
		if h, ok := frame.DecodeHeader(l.buf[end:], l.id, end); ok && h.Kind != frame.KindEnd {
			return false
		}
		if !reused(l.buf) {
			header := min(end+frame.HeaderBytes, int64(len(l.buf)))
			return allZero(l.buf[end:header]) && !allZero(l.buf[header:])
		}
		for off := end + frame.Align; off < int64(len(l.buf)); off += frame.Align {
			if h, _, ok := frame.Decode(l.buf[off:], l.id, off); ok && h.Kind != frame.KindEnd {
				return true
			}
		}
		return false
	})
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// hasReused reports whether some log segment's file was used before.
func hasReused(files []logFile) bool {
	return slices.ContainsFunc(files, func(l logFile) bool { return reused(l.buf) })
}

// reused reports whether the file of a log segment was used before.
func reused(buf []byte) bool {
	h, err := base.DecodeFileHeader(buf, base.FileLog, "")
	return err == nil && h.Reused
}

// mustReport reports whether a commit above seq has a byte on the disk, so that
// Open has to say that it dropped something: O6. Where the file was used before, nobody can
// tell what a byte is of: there it is the head of the commit's frame. Where garbage is the beginning
// of a file whose header was never synced, it may be somebody else's.
func mustReport(image *memfs.FS, written []place, seq uint64) bool {
	for _, p := range written {
		if p.seq <= seq {
			continue
		}
		buf, err := image.ReadFile(p.file)
		if err != nil || !base.MayBeOurs(base.FileLog, buf) {
			continue
		}
		if reused(buf) {
			h, _ := base.DecodeFileHeader(buf, base.FileLog, p.file)
			f, ok := frame.DecodeHeader(buf[min(p.off, int64(len(buf))):], frame.NewIdentity(h.File), p.off)
			if ok && f.Kind != frame.KindEnd {
				return true
			}
			continue
		}
		for _, b := range buf[min(p.off, int64(len(buf))):min(p.end, int64(len(buf)))] {
			if b != 0 {
				return true
			}
		}
	}
	return false
}
