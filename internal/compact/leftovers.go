package compact

import (
	"maps"
	"sync"

	"github.com/cairndb/cairn/internal/manifest"
)

// Leftovers remembers of the tables of a store what the merges that wrote them could not
// drop. It is safe for concurrent use. The zero value is empty.
type Leftovers struct {
	mu      sync.Mutex
	byTable map[uint64]Leftover
}

// Note takes up what Merge.Leftovers says of the tables, by number, that a job has written.
// oldest is the oldest snapshot there was when it began.
func (l *Leftovers) Note(job *Job, tables []uint64, left []Leftover, oldest uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byTable == nil {
		l.byTable = map[uint64]Leftover{}
	}
	full := job.Reason == ReasonSmall && len(left) >= job.Tables()
	for i, num := range tables {
		if job.Bottommost {
			left[i].Snapshot = oldest
		}
		left[i].Full, left[i].Quick = full, job.Quick && job.OutLevel == manifest.Bottom
		l.byTable[num] = left[i]
	}
}

// NoteQuick takes up tables of the last level that were compressed with little effort.
func (l *Leftovers) NoteQuick(tables []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, num := range tables {
		if _, known := l.byTable[num]; !known {
			if l.byTable == nil {
				l.byTable = map[uint64]Leftover{}
			}
			l.byTable[num] = Leftover{Quick: true}
		}
	}
}

// Drop forgets a table.
func (l *Leftovers) Drop(num uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byTable, num)
}

// All returns a copy, by number of the table.
func (l *Leftovers) All() map[uint64]Leftover {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byTable)
}
