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
// reserved, and in one that was filled.
func BenchmarkSyncedCommit(b *testing.B) {
	for _, size := range []int{100, 1000, 4096} {
		for _, filled := range []bool{false, true} {
			b.Run(fmt.Sprintf("value=%d/filled=%v", size, filled), func(b *testing.B) {
				s := newBenchSegment(b, filled)
				payload := frame.AppendEntry(nil, base.KindPut, []byte("\x00key"), make([]byte, size))
				for b.Loop() {
					if !s.Room(len(payload)) {
						b.StopTimer()
						s = newBenchSegment(b, filled)
						b.StartTimer()
					}
					s.Append(frame.Header{Kind: frame.KindCommit, Count: 1}, payload)
					check(b, s.WriteOut(true))
					check(b, s.Sync())
				}
			})
		}
	}
}

func newBenchSegment(b *testing.B, filled bool) *Segment {
	name := filepath.Join(b.TempDir(), base.FileName(base.FileLog, 1))
	s, err := Create(vfs.OS(), name, 1, storeID, make([]byte, 16<<20))
	check(b, err)
	b.Cleanup(func() { s.Close() })
	if filled {
		check(b, s.Fill(true, never))
	}
	s.Link(0, 0, 0)
	return s
}

// BenchmarkRelaxedCommit writes commits out through the mapping, and by system calls.
func BenchmarkRelaxedCommit(b *testing.B) {
	for _, size := range []int{100, 500, 2000} {
		for _, mapped := range []bool{false, true} {
			b.Run(fmt.Sprintf("value=%d/mapped=%v", size, mapped), func(b *testing.B) {
				s := newBenchSegment(b, true)
				payload := frame.AppendEntry(nil, base.KindPut, []byte("\x00key"), make([]byte, size))
				for b.Loop() {
					if !s.Room(len(payload)) {
						b.StopTimer()
						s = newBenchSegment(b, true)
						b.StartTimer()
					}
					s.Append(frame.Header{Kind: frame.KindCommit, Count: 1}, payload)
					check(b, s.WriteOut(!mapped))
				}
			})
		}
	}
}
