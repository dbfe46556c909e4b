package txn

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// longMemory is what a frame of longBytes, longer than those of version 1, goes through the log with.
const (
	longMemory = 2 << 30
	longBytes  = 24 << 20
)

func openLong(t *testing.T, m vfs.FS, relaxed bool) *engine.Engine {
	t.Helper()
	e, err := engine.Open(config.Config{Dir: "/db", FS: m, Relaxed: relaxed, SyncInterval: time.Hour, Memory: longMemory})
	check(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// valueOf makes the value of the i-th key.
type valueOf func(i, size int) []byte

// noise does not become smaller in tables.
func noise(i, size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(b)
	return b
}

// monotony becomes next to nothing there.
func monotony(i, size int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 'v'}, size/3) }

// longCommits are the ways to commit so much at once: n keys from 0 on, whose values have size bytes.
var longCommits = map[string]struct {
	n, size int
	commit  func(e *engine.Engine, n, size int, value valueOf) error
}{
	"batch": {longBytes / 1500, 1500, func(e *engine.Engine, n, size int, value valueOf) error {
		b := &frame.Entries{}
		for i := range n {
			b.Add(base.KindPut, bucket, userKey(i), value(i, size))
		}
		return Apply(e, b)
	}},
	"transaction": {longBytes / 1500, 1500, func(e *engine.Engine, n, size int, value valueOf) error {
		tx, err := Begin(e, true)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for i := range n {
			if err := tx.Put(key(i), value(i, size)); err != nil {
				return err
			}
		}
		_, err = tx.Commit()
		return err
	}},
	"put": {1, longBytes, func(e *engine.Engine, n, size int, value valueOf) error {
		return Put(e, bucket, userKey(0), value(0, size))
	}},
}

// holds returns how many of the n keys there are, each with the value it should have.
func holds(t *testing.T, e *engine.Engine, n, size int, value valueOf) (found int) {
	t.Helper()
	for i := range n {
		got, err := e.GetTo(bucket, userKey(i), nil)
		switch {
		case err == nil && bytes.Equal(got, value(i, size)):
			found++
		case !errors.Is(err, base.ErrNotFound):
			t.Fatalf("key %d: %d bytes, %v", i, len(got), err)
		}
	}
	return found
}

// TestALongFrame: what the log has room for is one frame of it, not tables, and after a power cut it is
// there as a whole or not at all; whole if it was durable.
func TestALongFrame(t *testing.T) {
	large(t)
	for name, c := range longCommits {
		for _, relaxed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s relaxed=%v", name, relaxed), func(t *testing.T) {
				m := memfs.New()
				if relaxed {
					m.AllowMaps()
				}
				e := openLong(t, m, relaxed)
				check(t, Put(e, bucket, []byte("before"), []byte("it")))
				check(t, e.Sync())
				check(t, c.commit(e, c.n, c.size, noise))
				atOnce := m.Crash(memfs.SyncedOnly()) // the store soon comes to rest, and makes it a table
				for _, l := range e.State().Layers {
					if len(l.Tables()) > 0 {
						t.Error("it became a table before it was committed")
					}
				}
				if found := holds(t, e, c.n, c.size, noise); found < c.n {
					t.Fatalf("%d of %d keys are there", found, c.n)
				}
				choices := []memfs.Choice{memfs.SyncedOnly(), memfs.Everything()}
				for seed := range uint64(4) {
					choices = append(choices, memfs.Random(seed))
				}
				lost := 0
				for i, choice := range choices {
					cut := atOnce
					if i > 0 {
						cut = m.Crash(choice)
					}
					again := openLong(t, cut, relaxed)
					if _, err := again.GetTo(bucket, []byte("before"), nil); err != nil {
						t.Errorf("%v: what was there before: %v", choice, err)
					}
					found := holds(t, again, c.n, c.size, noise)
					if found > 0 && found < c.n || found == 0 && !relaxed {
						t.Errorf("%v: %d of %d keys are there", choice, found, c.n)
					}
					if found == 0 {
						lost++
					}
					check(t, again.Close())
				}
				if relaxed && lost == 0 {
					t.Error("no power cut took it away")
				}
				check(t, e.Close())
				if found := holds(t, openLong(t, m, relaxed), c.n, c.size, noise); found < c.n {
					t.Errorf("%d of %d keys are there after it was closed", found, c.n)
				}
			})
		}
	}
}

// TestALongFrameOnAFullDisk: what the log has no space for becomes tables, if these fit. If not, nothing
// is changed, and the store goes on.
func TestALongFrameOnAFullDisk(t *testing.T) {
	large(t)
	for name, c := range longCommits {
		t.Run(name, func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			e := openLong(t, m, false)
			check(t, Put(e, bucket, []byte("before"), make([]byte, 1<<20)))
			m.SetCapacity(m.Used() + 12<<20)
			if err := c.commit(e, c.n, c.size, noise); !errors.Is(err, base.ErrNoSpace) {
				t.Fatalf("more than the disk has: %v", err)
			}
			if found := holds(t, e, c.n, c.size, noise); found > 0 {
				t.Errorf("%d keys of what failed are there", found)
			}
			check(t, c.commit(e, c.n, c.size, monotony))
			if found := holds(t, e, c.n, c.size, monotony); found < c.n {
				t.Errorf("%d of %d keys are there", found, c.n)
			}
			check(t, Put(e, bucket, []byte("after"), []byte("it")))
			check(t, e.Close())
			again := openLong(t, m, false)
			for _, k := range []string{"before", "after"} {
				if _, err := again.GetTo(bucket, []byte(k), nil); err != nil {
					t.Errorf("%s: %v", k, err)
				}
			}
			if found := holds(t, again, c.n, c.size, monotony); found < c.n {
				t.Errorf("%d of %d keys are there after it was closed", found, c.n)
			}
		})
	}
}

// TestALongFrameOfUnknownOutcome: what may be there when the store is opened again, since it was written to the
// log though the system said it was not, and there is no space for another log, is not tried another way; and
// its error says that nobody knows, and not that space would help.
func TestALongFrameOfUnknownOutcome(t *testing.T) {
	large(t)
	unknown := 0
	for name, c := range longCommits {
		t.Run(name, func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			fsys := faultfs.New(m)
			e := openLong(t, fsys, false)
			n, size := max(c.n*3/4, 1), c.size
			if n == 1 {
				size = size * 3 / 4
			}
			values := make([][]byte, n)
			for i := range values {
				values[i] = noise(i, size)
			}
			value := func(i, _ int) []byte { return values[i] }
			for filler := make([]byte, 1400); ; { // until there is a segment that has room for it
				check(t, Put(e, bucket, []byte("filler"), filler))
				if l := e.State().Layers; len(l) > 0 && l[0].Mem.Seg.Room(n*(size+64)) && l[0].Mem.Room(n) { // none if it has come to rest
					break
				}
			}
			fsys.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Sticky: true, Do: faultfs.Short(math.MaxInt, syscall.EIO)})
			fsys.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "*.log", Sticky: true, Do: faultfs.NoSpace()})
			tables := fsys.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "*.sst"})
			err := c.commit(e, n, size, value)
			switch {
			case errors.Is(err, base.ErrCommitUnknown):
				if unknown++; tables.Seen() > 0 || errors.Is(err, base.ErrNoSpace) {
					t.Errorf("%d tables were made of it, and the error is %v", tables.Seen(), err)
				}
			case !errors.Is(err, base.ErrNoSpace): // the store came to rest meanwhile, and there was no other segment
				t.Errorf("the error is %v", err)
			}
			fsys.Heal()
			e.Close()
			again := openLong(t, m, false)
			if found := holds(t, again, n, size, value); found > 0 && (found < n || !errors.Is(err, base.ErrCommitUnknown)) {
				t.Errorf("the error was %v, %d of %d keys are there", err, found, n)
			}
		})
	}
	if unknown == 0 {
		t.Error("no outcome was unknown")
	}
}
