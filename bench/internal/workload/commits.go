package workload

import (
	"slices"

	"github.com/cairndb/cairn/bench/internal/engine"
)

// CommitKind is a way to commit. For each kind it is verified, by counting system
// calls, whether an engine makes such commits durable.
type CommitKind string

// Kinds of commit.
const (
	PutCommits    CommitKind = "put"
	DeleteCommits CommitKind = "delete"
	BatchCommits  CommitKind = "batch"
	SharedCommits CommitKind = "shared" // puts of several goroutines at once
)

// CommitKinds lists all of them, in the order reports show.
var CommitKinds = []CommitKind{PutCommits, DeleteCommits, BatchCommits, SharedCommits}

// OnlyBatches reports whether all that the workload commits are batches.
func (w Workload) OnlyBatches() bool { return slices.Equal(w.Commits, []CommitKind{BatchCommits}) }

// KindsFor returns the kinds of commit the workload makes on an engine, which puts
// pair by pair where it has no batches.
func (w Workload) KindsFor(info engine.Info) []CommitKind {
	kinds := w.Commits
	if kinds == nil {
		kinds = []CommitKind{PutCommits, DeleteCommits, BatchCommits}
	}
	var out []CommitKind
	for _, k := range kinds {
		if k == DeleteCommits && info.Name == w.UnsyncedDeletes {
			continue
		}
		if k == BatchCommits && !info.Can(engine.CanBatch) {
			k = PutCommits
		}
		if k == SharedCommits && !info.Can(engine.CanShare) {
			k = PutCommits
		}
		out = append(out, k)
	}
	return out
}
