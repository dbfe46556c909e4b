package crashtest

import (
	"fmt"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/vfs/memfs"
)

// examination opens the store on one image and checks O1 to O7.
type examination struct {
	h       *History
	m       Moment
	image   *memfs.FS
	written []place // frames of commits before anything was lost
	options cairn.Options
	silent  bool // O6 does not apply: frames of failed commits, or a drop reported before
	partial bool // half a frame may have been stored
	found   *Found
}

// run examines. Only if thorough is O7 checked beyond the first Close.
func (x *examination) run(thorough bool) error {
	before := x.image.Clone()
	before.StopJournal()
	s, err := openAs(x.image, x.options)
	if err != nil {
		return fmt.Errorf("O1: %w", err)
	}
	if err := x.judge(s, before); err != nil {
		s.Close()
		return err
	}
	var extra []Pair
	if thorough {
		extra = []Pair{{"zzz/after", "crash"}}
		if _, err := s.Commit([]Op{{base.KindPut, extra[0].Key, extra[0].Value}}, true); err != nil {
			s.Close()
			return fmt.Errorf("O7: commit after the crash: %w", err)
		}
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("O7: close: %w", err)
	}
	if err := checkFiles(x.image); err != nil || !thorough {
		return err
	}
	return x.again(append(x.found.Pairs, extra...))
}

// judge checks O2 to O6.
func (x *examination) judge(s *Store, before *memfs.FS) (err error) {
	if x.found, err = x.h.Judge(s, x.m); err != nil || x.silent {
		return err
	}
	if x.found.Dropped == 0 && mustReport(before, x.written, x.found.lastSeq(x.h)) {
		return fmt.Errorf("O6: a frame behind commit %d was on the disk, but no dropped bytes are reported", x.found.Prefix)
	}
	if x.found.Dropped > 0 && x.m.Complete && !x.partial && !headless(before) {
		return fmt.Errorf("O6: %d dropped bytes are reported though nothing was lost", x.found.Dropped)
	}
	return nil
}

// again opens the store once more and expects the same contents.
func (x *examination) again(want []Pair) error {
	s, err := openAs(x.image, x.options)
	if err != nil {
		return fmt.Errorf("O7: second open: %w", err)
	}
	got, err := s.Contents()
	if err == nil {
		err = diff(want, got)
	}
	if err != nil {
		s.Close()
		return fmt.Errorf("O7: after the second open: %w", err)
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("O7: second close: %w", err)
	}
	return checkFiles(x.image)
}
