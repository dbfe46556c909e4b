// Package config is what a store is opened with, checked, and the bounds that follow
// from its memory.
//
// A Config is not changed once a store is open, so any number of goroutines may read it.
package config

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/vfs"
)

// Config is what the engine needs to open a store. The root package fills it from its Options.
type Config struct {
	Dir          string
	FS           vfs.FS
	ReadOnly     bool
	Relaxed      bool          // default durability of commits
	SyncInterval time.Duration // background sync of relaxed commits
	Memory       int64         // bytes; the bound of everything
	Profile      tablefiles.Profile
	LockTimeout  time.Duration
	Logger       *slog.Logger
	OnEvent      func(report.Event)
}

// MinMemory is the least Memory a store works with.
const MinMemory = 1 << 20

const maxSegmentBytes = 64 << 20

// Check returns what is wrong with it: a base.ErrInvalidOption.
func (c *Config) Check() error {
	if c.Memory < MinMemory {
		return fmt.Errorf("%w: Memory is %d bytes, the least is %d", base.ErrInvalidOption, c.Memory, int64(MinMemory))
	}
	if c.SyncInterval < 0 {
		return fmt.Errorf("%w: SyncInterval is %v", base.ErrInvalidOption, c.SyncInterval)
	}
	if c.LockTimeout < 0 {
		return fmt.Errorf("%w: LockTimeout is %v", base.ErrInvalidOption, c.LockTimeout)
	}
	if c.Profile > tablefiles.ProfileNone {
		return fmt.Errorf("%w: unknown Compression %d", base.ErrInvalidOption, c.Profile)
	}
	return nil
}

// SegmentLimit is the greatest size of an ordinary segment: a sixteenth of the
// memory, so that active, spare and sealed memtables fit into half of it.
func (c *Config) SegmentLimit() int {
	limit := int(min(c.Memory/16, maxSegmentBytes)) &^ 4095
	return max(limit, 64<<10)
}

// WaitingBytes is how many bytes of sealed memtables together wait for the store to rest, where
// no commit waits for them to be flushed: half of a large segment.
func (c *Config) WaitingBytes() int64 { return min(c.Memory/16, maxSegmentBytes) / 2 }

// BurstBytes is the same in a burst of commits, where memtables are bulky: as much as is
// replayed in some seconds by the Open after a crash.
func (c *Config) BurstBytes() int64 { return min(c.Memory/8, 12*maxSegmentBytes) }

// TogetherBytes is how much log is flushed to one run at most, where memtables wait.
func (c *Config) TogetherBytes() int64 { return max(c.BurstBytes()/3, int64(c.SegmentLimit())) }

// How many memtables may wait to be flushed where there is more memory than segments are made for. Each
// is one more place where a get looks, and is replayed by the Open after a crash. Where they are bulky
// (tree.State.BulkyLayers) those places are small, and most of their memory is the system's to take
// back: so many of these come on top.
const (
	mostWaiting = 10
	bulkyOnTop  = 14
)

// FreeMemtables is how many memtables may wait before commits are slowed: below where MemtableLimit
// stops them, unless Memory is small.
const FreeMemtables = mostWaiting - 1

// FreeInBurst is how many more may wait where so many are bulky, in a burst of commits.
func (c *Config) FreeInBurst(bulky int) int {
	fit := int(c.Memory / 4 / int64(c.SegmentLimit()))
	return max(0, min(bulky, bulkyOnTop, fit-4-FreeMemtables)) // but for the active one, the spare, and their indexes
}

// MemtableLimit is how many bytes memtables may take, with the next one, while there are so
// many layers, that to which commits are added with them, so many of them bulky, before commits
// wait for a flush.
// Three may wait to be flushed whatever they take, up to half of the memory: point indexes
// and pages share the rest.
func (c *Config) MemtableLimit(layers, bulky int) int64 {
	const waiting = 3
	switch {
	case layers <= waiting:
		return c.Memory / 2
	case layers <= mostWaiting+min(bulky, bulkyOnTop):
		return c.Memory / 4
	}
	return 0
}

// SpillBytes is the size of the largest commit that goes through the log as a frame. What is larger goes
// by private runs.
func (c *Config) SpillBytes() int {
	return int(min(c.Memory/16, frame.MaxBytes-frame.HeaderBytes-frame.Align))
}

// GatherBytes is how much a transaction gathers for one private run. Where there
// is memory runs are large, since few of them need less merging.
func (c *Config) GatherBytes() int {
	return int(max(min(c.Memory/16, 16<<20), min(c.Memory/64, 64<<20)))
}
