package merger

import (
	"sync/atomic"

	"github.com/cairndb/cairn/internal/compact"
	"github.com/cairndb/cairn/internal/tree"
)

// Where the store does not fit into Memory, and whoever runs it has given the process little more, the system drops
// pages of mapped logs to make room for the tables that are read and written. A flush comes to the records in the
// order of their keys: it would wait for the device for nearly each. So the logs are fetched as a whole (tree.Memory),
// before they are read and some times while they are.

// fetches is how often the logs are fetched while a merge writes as many bytes as they hold, or more often, where
// rows are small (compact.Merge.Check).
const fetches = 4

// fetched returns a check of a merge of memtables that has their logs fetched, at once and now and then, unless
// everything fits into memory.
func (m *Merger) fetched(mems []*tree.Memory, check func() error) func() error {
	if !m.Tables.Pages.Scarce() {
		return check
	}
	bytes := int64(0)
	for _, mem := range mems {
		mem.Fetch()
		bytes += mem.LogBytes()
	}
	every := max(bytes/fetches/compact.CheckBytes, 1)
	var asked atomic.Int64
	return func() error {
		if asked.Add(1)%every == 0 {
			for _, mem := range mems {
				mem.Fetch()
			}
		}
		return check()
	}
}
