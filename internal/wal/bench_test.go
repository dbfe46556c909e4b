package wal

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
)

// BenchmarkSyncedCommit writes and syncs commits in a segment whose space is only
// reserved, and in one where zeros go with them.
func BenchmarkSyncedCommit(b *testing.B) {
	for _, size := range []int{100, 1000, 4096} {
		for _, zeros := range []bool{false, true} {
			b.Run(fmt.Sprintf("value=%d/zeros=%v", size, zeros), func(b *testing.B) {
				benchCommits(b, size, false, zeros, func(s *Segment) {
					check(b, s.WriteOut())
					check(b, s.Sync())
				})
			})
		}
	}
}

// BenchmarkRelaxedCommit stores commits in a mapped segment, and writes them to one that is not.
func BenchmarkRelaxedCommit(b *testing.B) {
	for _, size := range []int{100, 500, 4000, 16000} {
		for _, mapped := range []bool{false, true} {
			b.Run(fmt.Sprintf("value=%d/mapped=%v", size, mapped), func(b *testing.B) {
				benchCommits(b, size, mapped, false, func(s *Segment) { check(b, s.WriteOut()) })
			})
		}
	}
}

// benchCommits appends commits of one value, does out after each, and begins another
// segment, off the clock, when one is full.
func benchCommits(b *testing.B, size int, mapped, zeros bool, out func(*Segment)) {
	s := newBenchSegment(b, mapped, zeros)
	payload := frame.AppendEntry(nil, base.KindPut, []byte("\x00key"), make([]byte, size))
	for b.Loop() {
		if !s.Room(len(payload)) {
			b.StopTimer()
			s.Drop()
			s = newBenchSegment(b, mapped, zeros)
			b.StartTimer()
		}
		s.Append(frame.Header{Kind: frame.KindCommit, Count: 1}, payload)
		out(s)
	}
}

func newBenchSegment(b *testing.B, mapped, zeros bool) *Segment {
	const size = 16 << 20
	name := filepath.Join(b.TempDir(), base.FileName(base.FileLog, 1))
	s, err := (*Segment)(nil), error(nil)
	if mapped {
		s, err = CreateMapped(vfs.OS(), name, 1, storeID, size, true, noBuffer)
	} else {
		s, err = Create(vfs.OS(), name, 1, storeID, make([]byte, size), false)
	}
	check(b, err)
	b.Cleanup(s.Drop)
	if zeros {
		check(b, s.Fill(true, never))
	}
	s.Link(0, 0, 0)
	return s
}
