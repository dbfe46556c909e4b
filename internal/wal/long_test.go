package wal

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestLongFrame: a segment that can hold a frame longer than those of version 1 says so, and the frame is
// found whole or, where any of it is missing, not at all.
func TestLongFrame(t *testing.T) {
	value := bytes.Repeat([]byte("0123456789abcde\n"), frame.MaxShortBytes/16)
	size := (len(value) + 8192 + lengthUnit - 1) &^ (lengthUnit - 1)
	fs := memfs.New()
	fs.StopJournal()
	s := create(t, fs, 1, size)
	s.Link(0, 0, 0)
	entry := frame.AppendEntry(nil, base.KindPut, []byte("\x00key"), value)
	s.Append(frame.Header{Kind: frame.KindCommit, Seq: 1, Count: 1}, entry[:100], entry[100:])
	end, _ := s.Tail()
	commit(s, 2, 0, "after")
	check(t, s.WriteOut())
	data, err := fs.ReadFile(s.name)
	check(t, err)

	replay := func(data []byte) (seqs []uint64, r *Replay) {
		t.Helper()
		l, err := Load(bytesFile{data: data}, s.name, Recorded{Num: s.Num, File: s.File}, storeID, make([]byte, len(data)))
		check(t, err)
		r = &Replay{}
		check(t, r.Segment(l, nil, func(h frame.Header, _ int64, payload []byte) error {
			if h.Seq == 1 && !bytes.Equal(payload, entry) {
				t.Error("the long frame is not what was appended")
			}
			seqs = append(seqs, h.Seq)
			return nil
		}))
		return seqs, r
	}
	if seqs, r := replay(data); fmt.Sprint(seqs) != "[1 2]" || r.Dropped > 0 {
		t.Errorf("sequences %v, %d bytes dropped", seqs, r.Dropped)
	}
	payloadAt := int64(OverheadBytes + frame.HeaderBytes)
	for _, at := range []int64{payloadAt, payloadAt + frame.MaxShortBytes, end.Offset() - 1} {
		data[at] ^= 1
		if seqs, r := replay(data); len(seqs) > 0 || r.Dropped == 0 {
			t.Errorf("damage at %d: sequences %v, %d bytes dropped", at, seqs, r.Dropped)
		}
		data[at] ^= 1
	}
}

// TestLogVersions: a segment has the lowest version that tells what may be in it, and one of a version
// to come is refused, known to the manifest or not.
func TestLogVersions(t *testing.T) {
	fs := memfs.New()
	fs.StopJournal()
	for size, want := range map[int]uint32{lengthUnit: 1, frame.MaxShortBytes: 1, frame.MaxShortBytes + lengthUnit: 2} {
		for _, mapped := range []bool{false, true} {
			if mapped && !arena.CanDetach { // no log is mapped there
				continue
			}
			num := uint64(size)
			var s *Segment
			if mapped {
				fs.AllowMaps()
				num++
				var err error
				s, err = CreateMapped(fs, base.FileName(base.FileLog, num), num, storeID, size, true, nil)
				check(t, err)
			} else {
				s = create(t, fs, num, size)
			}
			data, err := fs.ReadFile(s.name)
			check(t, err)
			h, err := base.DecodeFileHeader(data, base.FileLog, s.name)
			if err != nil || h.Version != want {
				t.Errorf("segment of %d bytes, mapped %v: version %d, %v, want %d", size, mapped, h.Version, err, want)
			}
			h.Version = base.LongLogVersion + 1
			copy(data, base.AppendFileHeader(nil, h))
			rec := Recorded{Num: num, File: s.File, Provisional: mapped}
			if _, err := Load(bytesFile{data: data}, s.name, rec, storeID, make([]byte, len(data))); !errors.Is(err, base.ErrFormatTooNew) {
				t.Errorf("a version to come: %v", err)
			}
			if stray, err := LoadStray(data, s.name, num, storeID); stray != nil || !errors.Is(err, base.ErrFormatTooNew) {
				t.Errorf("a version to come that no manifest names: %v", err)
			}
			s.Drop()
			check(t, fs.Remove(s.name))
		}
	}
}
