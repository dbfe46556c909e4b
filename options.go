package cairn

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/cairndb/cairn/internal/arena"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/report"
	"github.com/cairndb/cairn/internal/tablefiles"
	"github.com/cairndb/cairn/vfs"
)

// Durability says what an acknowledged commit survives.
type Durability uint8

const (
	// Durable commits survive power loss: their log record is synced before the
	// call returns. Nobody sees a durable commit before that.
	Durable Durability = iota
	// Relaxed commits survive the end of the process, kill -9 included: the
	// operating system has them when the call returns. They are synced every
	// Options.SyncInterval; a power cut loses a suffix of what was not.
	Relaxed
)

// String returns the name of the durability.
func (d Durability) String() string { return name(d, "durable", "relaxed") }

// Compression is a profile: which codec pages of tables get at which level.
type Compression uint8

const (
	// Balanced is S2 on upper levels, where data is young, and zstd on the last. That is S2
	// too, as long as tables fit into half of Memory decoded, of a store of up to 64 MiB while
	// it is written to, of any where compaction does not keep up with commits, and when it is
	// closed, but for a store of up to 16 MiB of which most has zstd already: the next time the
	// store is open and nobody writes to it for a second, or Compact is called, zstd takes its
	// place.
	Balanced Compression = iota
	// Fast is S2 on every level.
	Fast
	// Small is zstd on every level.
	Small
	// None stores pages as they are.
	None
)

// String returns the name of the profile.
func (c Compression) String() string { return name(c, "balanced", "fast", "small", "none") }

// name returns the i-th name, or the number of a value that has none.
func name[T ~uint8](i T, names ...string) string {
	if int(i) < len(names) {
		return names[i]
	}
	return strconv.Itoa(int(i))
}

// Options says how to open a store. The zero value of each field is its default.
type Options struct {
	// ReadOnly opens without changing a byte, and needs no permission to write.
	// Any number of processes may do so at once, also while one has the store open
	// for writing: each read and each transaction sees the newest commit there was
	// when it began, of any process, and a transaction sees that until it ends. The
	// writer is not held up, whatever becomes of readers. A reader has an
	// index of its own of what of the log is not in tables yet.
	//
	// To read beside a writer takes Linux and a local file system: ext2 to ext4,
	// XFS, tmpfs, or overlayfs over one of them. Elsewhere a store has one writer or any number of
	// readers, and Open returns a *LockedError; so do reads of a copy that had no lock file when it was opened,
	// as long as somebody writes it who came later.
	ReadOnly bool

	// Durability of commits that do not choose their own (Tx.SetDurability).
	Durability Durability

	// SyncInterval is how often relaxed commits are synced in the background.
	// Default: one second. At least a millisecond passes.
	SyncInterval time.Duration

	// Memory bounds, in bytes, what the store keeps in memory: memtables,
	// decoded pages, point indexes, table metadata. Outside it are the Go runtime's
	// own (allow 16 MiB), a batch before it is written, range deletes that are not yet
	// applied and the bounds of tables, each as long as a key (both counted, not
	// bounded), the log that Open replays after a crash, and what callers keep alive:
	// copies they asked for, memtables and pages an idle iterator stands on, and the tables of a
	// large transaction's writes that its iterators have from when they were made. Up
	// to 64 MiB stay for a second after Close, for the next store of the process. Default: a quarter of what the
	// process may use (physical memory, control group or, on Linux, RLIMIT_AS and RLIMIT_DATA), 512 MiB where
	// the system does not say (Windows and the BSDs), and no more than that with 32 bit. Least: 1 MiB. It
	// must fit into what the system gives the process, with 32 bit into the addresses that are free: where
	// it does not the store takes less (Stats.MemoryLimit), and the Go runtime may find none (docs/LIMITS.md).
	Memory int64

	// Compression of tables. A store may change it from one Open to the next.
	Compression Compression

	// LockTimeout is how long Open waits for another process to let go of the
	// store. Default: not at all, Open fails at once with a *LockedError.
	LockTimeout time.Duration

	// FS is the file system the store is on. Default: the operating system's, on which dir is
	// resolved once, by Open; every other one resolves names itself, each time. One that wraps
	// another hands on what its Lock returns as it is (vfs.Sharer): of a store whose writer does not,
	// readers on the operating system's do not notice what is committed.
	FS vfs.FS

	// Logger gets background events, errors at level Error and the rest at level
	// Debug. What handles them must return soon, and not call the store. Default: silent.
	Logger *slog.Logger

	// OnEvent is called for every background event, from several goroutines, and
	// must return soon. It must not call the store. After Close has returned it is
	// not called any more.
	OnEvent func(Event)
}

const defaultSyncInterval = time.Second

// check refuses what the engine could not notice any more.
func (o *Options) check(dir string) error {
	switch {
	case dir == "":
		return fmt.Errorf("%w: no directory", ErrInvalidOption)
	case o != nil && o.Durability > Relaxed:
		return fmt.Errorf("%w: unknown Durability %d", ErrInvalidOption, o.Durability)
	}
	return nil
}

// config translates options for the engine.
func (o *Options) config(dir string) config.Config {
	if o == nil {
		o = &Options{}
	}
	c := config.Config{
		Dir: dir, FS: o.FS, ReadOnly: o.ReadOnly, Relaxed: o.Durability == Relaxed,
		SyncInterval: o.SyncInterval, Memory: o.Memory, Profile: tablefiles.Profile(o.Compression),
		LockTimeout: o.LockTimeout, Logger: o.Logger,
	}
	if c.FS == nil {
		c.FS = vfs.OS()
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	if c.Memory == 0 {
		c.Memory = arena.SystemLimit() / 4
		if math.MaxInt == math.MaxInt32 {
			c.Memory = min(c.Memory, 512<<20) // of 4 GiB of addresses, some of which are the program's
		}
	}
	if on := o.OnEvent; on != nil {
		c.OnEvent = func(e report.Event) { on(event(e)) }
	}
	return c
}

// EventKind says what an Event is about.
type EventKind uint8

const (
	EventRecovery        = EventKind(report.EventRecovery)        // progress of an Open after an unclean end
	EventFlush           = EventKind(report.EventFlush)           // memtables were written to tables, or at rest merged with them
	EventCompaction      = EventKind(report.EventCompaction)      // tables were merged
	EventStall           = EventKind(report.EventStall)           // commits had to wait for memory
	EventBackgroundError = EventKind(report.EventBackgroundError) // background work failed; it is tried again unless the store is poisoned
	EventNoSpace         = EventKind(report.EventNoSpace)         // the disk is full; work resumes when space returns
)

// String returns what the event is about.
func (k EventKind) String() string {
	return name(k, "none", "recovery", "flush", "compaction", "stall", "background error", "no space")
}

// Event is something that happened in the background.
type Event struct {
	Kind     EventKind
	Time     time.Time     // when it was over
	Duration time.Duration // how long it took
	Done     int64         // bytes done
	Total    int64         // bytes to do; 0 where that is not known
	Level    int           // EventCompaction: the level written to
	Err      error         // EventBackgroundError, EventNoSpace
}

func event(e report.Event) Event {
	return Event{Kind: EventKind(e.Kind), Time: e.Time, Duration: e.Duration, Done: e.Done, Total: e.Total, Level: e.Level, Err: e.Err}
}
