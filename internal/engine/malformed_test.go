package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/config"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// entriesOf encodes so many puts, each with a value of three bytes.
func entriesOf(n int) (payload []byte) {
	for i := range n {
		payload = frame.AppendEntry(payload, base.KindPut, fmt.Appendf(nil, "\x00%02d", i), []byte("abc"))
	}
	return payload
}

// malformed has entries that are none: at the beginning, in the middle and at the end, alone too.
func malformed() map[string][]byte {
	twelve := entriesOf(12)
	return map[string][]byte{
		"alone":            {0xFF, 1, 2},
		"at the beginning": slices.Concat([]byte{0xFF, 1, 2}, twelve),
		"in the middle":    slices.Concat(twelve, []byte{0xFF, 1, 2}, entriesOf(3)),
		"at the end":       slices.Concat(twelve, []byte{0xFF, 3, 4}),
		"cut off":          twelve[:len(twelve)-1],
		"a range backward": frame.AppendEntry(entriesOf(11), base.KindRangeDelete, []byte("\x00m"), []byte("\x00a")),
		"a range too far":  frame.AppendEntry(entriesOf(11), base.KindRangeDelete, []byte("\x00m"), append([]byte("\x00n"), make([]byte, base.MaxKeyBytes)...)),
	}
}

// TestReplayOfMalformedCommits: a commit whose frame is intact and whose entries are not, or are not as many as it
// says, is damage, and where it is is told.
func TestReplayOfMalformedCommits(t *testing.T) {
	type commit struct {
		payload []byte
		count   int
	}
	commits := map[string]commit{"too few": {entriesOf(12), 13}, "too many": {entriesOf(12), 11}, "none": {nil, 1}}
	for name, payload := range malformed() {
		commits[name] = commit{payload, 12}
	}
	for name, c := range commits {
		fsys := memfs.New()
		e := mustOpen(t, config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour})
		putOne(t, e, "first", 100, true)
		e.commit.mu.Lock()
		seg := e.commit.mem.Seg
		h := frame.Header{Kind: frame.KindCommit, Seq: e.commit.nextSeq, Count: uint32(c.count), Durable: uint64(e.commit.log.End())}
		at := seg.Append(h, c.payload)
		e.commit.mu.Unlock()
		if err := errors.Join(seg.WriteOut(), seg.Sync()); err != nil {
			t.Fatal(err)
		}
		var broken *base.CorruptionError
		_, err := Open(config.Config{Dir: "/db", FS: fsys.Clone(), Memory: 64 << 20})
		switch {
		case !errors.As(err, &broken) || !strings.HasSuffix(broken.File, ".log"):
			t.Errorf("%s: %v", name, err)
		case broken.Offset < at || broken.Offset > at+int64(len(c.payload)):
			t.Errorf("%s, in the %d bytes from %d: %v", name, len(c.payload), at, err)
		}
	}
}

// TestNoMalformedCommit: a commit that would not be read again is not acknowledged, nobody waits for ever, and the store can be
// opened again.
func TestNoMalformedCommit(t *testing.T) {
	for name, payload := range malformed() {
		for _, relaxed := range []bool{false, true} {
			fsys := memfs.New()
			fsys.AllowMaps()
			cfg := config.Config{Dir: "/db", FS: fsys, Memory: 64 << 20, SyncInterval: time.Hour, Relaxed: relaxed}
			e := mustOpen(t, cfg)
			putOne(t, e, "first", 100, true)
			w := Write{Entries: [][]byte{payload}, Bytes: len(payload) + 1, Count: 12, Durable: true}
			if _, err := e.Commit(&w); !errors.Is(err, base.ErrBatchChanged) || errors.Is(err, base.ErrPoisoned) {
				t.Errorf("%s, of another length: %v", name, err)
			}
			for range 2 {
				if _, err := e.Commit(&Write{Entries: [][]byte{payload}, Bytes: len(payload), Count: 12, Durable: true}); !errors.Is(err, base.ErrPoisoned) {
					t.Errorf("%s: acknowledged, %v", name, err)
				}
			}
			e.Close()
			again, err := Open(cfg)
			if err != nil || again.Visible() != 1 {
				t.Errorf("%s, relaxed %v: opened again: %v", name, relaxed, err)
			}
			if err == nil {
				again.Close()
			}
		}
	}
}

// TestNoCommitBehindPoison: a commit that has waited for a flush finds the store poisoned meanwhile, by one that is malformed,
// and is not acknowledged: it could not be found behind that one.
func TestNoCommitBehindPoison(t *testing.T) {
	for _, relaxed := range []bool{false, true} {
		cfg := config.Config{Dir: "/db", FS: memfs.New(), Memory: 64 << 20, SyncInterval: time.Hour, Relaxed: relaxed}
		e := mustOpen(t, cfg)
		putOne(t, e, "first", 100, true)
		c := &e.commit
		c.mu.Lock()
		e.flushErr = vfs.ErrNoSpace // a flush has failed
		c.mu.Unlock()
		done := make(chan error, 1)
		go func() { done <- commitAs(e, base.KindPut, []byte("waited"), []byte("v"), !relaxed) }()
		eventually(t, "the commit waits", func() bool { return len(e.wakeFlush) > 0 })
		c.mu.Lock() // it waits, or the signal would not be there: stall lets go of mu only where it does
		e.flushErr = nil
		e.flushTries++
		c.cond.Broadcast()
		payload := malformed()["in the middle"]
		_, err := e.append(&Write{Entries: [][]byte{payload}, Bytes: len(payload), Count: 12, Durable: !relaxed})
		c.mu.Unlock()
		if !errors.Is(err, base.ErrPoisoned) {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, base.ErrPoisoned) {
			t.Errorf("relaxed %v: %v", relaxed, err)
		}
		e.Close()
		again := mustOpen(t, cfg)
		if n := again.Visible(); n != 1 {
			t.Errorf("relaxed %v: opened again, %d is visible", relaxed, n)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSequencesEnd: a store that says it has nearly all sequences there are takes no commit, which could not be written to a table.
func TestSequencesEnd(t *testing.T) {
	e := mustOpen(t, config.Config{Dir: "/db", FS: memfs.New(), Memory: 64 << 20})
	c := &e.commit
	c.mu.Lock()
	before := c.nextSeq
	c.nextSeq = base.MaxSeq - 1000
	c.mu.Unlock()
	for _, kind := range []base.Kind{base.KindPut, base.KindDelete} {
		if err := commitAs(e, kind, []byte("key"), nil, true); !errors.Is(err, base.ErrCorrupt) {
			t.Error(err)
		}
	}
	c.mu.Lock()
	c.nextSeq = before
	c.mu.Unlock()
	if err := errors.Join(commitAs(e, base.KindPut, []byte("key"), nil, true), e.Close()); err != nil {
		t.Error(err)
	}
}
