//go:build linux

package lifetest

import (
	"bufio"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

// besideKilled is what runs beside a writer that is killed again and again.
type besideKilled struct {
	*testing.T
	dir   string
	acked [killWriters]atomic.Uint64 // known to the test
	over  atomic.Bool
	looks atomic.Int64 // states found whole, by this process
	heard atomic.Int64 // and by others
	kills atomic.Int64 // of readers
	stops atomic.Int64 // of readers, until they were continued
}

// read reads the store in this process, which knows what has been acknowledged.
func (b *besideKilled) read(r *rand.Rand) {
	var last [killWriters]uint64
	for !b.over.Load() {
		db, err := cairn.Open(b.dir, &cairn.Options{ReadOnly: true, Memory: killMemory})
		if err != nil {
			b.Errorf("open to read: %v", err)
			return
		}
		for range 1 + r.IntN(100) {
			least := last
			for w := range least {
				least[w] = max(least[w], b.acked[w].Load())
			}
			if last, err = verifyCommits(db); err == nil {
				err = grown(least, last)
			}
			if err != nil {
				b.Errorf("read beside the writer: %v", err)
				break
			}
			b.looks.Add(1)
		}
		if err := db.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
		if b.Failed() {
			return
		}
	}
}

// readers starts one process after another that reads, stops each now and then for a while, and kills it.
func (b *besideKilled) readers(r *rand.Rand) {
	for !b.over.Load() && !b.Failed() {
		cmd := exec.Command(os.Args[0], b.dir)
		cmd.Env = append(os.Environ(), childVariable+"=read")
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Error(err)
			return
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if s := lines.Text(); strings.HasPrefix(s, "e") {
					b.Errorf("a reading process: %s", s)
				} else {
					b.heard.Add(1)
				}
			}
		})
		for range r.IntN(4) {
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			if cmd.Process.Signal(syscall.SIGSTOP) == nil {
				time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
				cmd.Process.Signal(syscall.SIGCONT)
				b.stops.Add(1)
			}
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		cmd.Process.Kill()
		reading.Wait()
		cmd.Wait()
		b.kills.Add(1)
	}
}

// TestKillBesideReaders: while a writing process is killed and comes again, others read the store. What they
// find is whole, never older than what they have found before, nor than what was acknowledged when they began
// to look; and they, killed and stopped at any instant, are in nobody's way.
func TestKillBesideReaders(t *testing.T) {
	rounds := of(12, 300)
	seed := testSeed(t)
	r := rand.New(rand.NewPCG(seed, 12))
	b := &besideKilled{T: t, dir: filepath.Join(t.TempDir(), "store")}
	db, err := cairn.Open(b.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if w, err := vfs.OS().(vfs.Watcher).Watch(filepath.Join(b.dir, "LOCK")); errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("NOT TESTED on the file system of %s: %v", b.dir, err)
	} else if err != nil {
		t.Fatal(err)
	} else {
		w.Close()
	}
	var others sync.WaitGroup
	for i := range 2 {
		others.Go(func() { b.read(rand.New(rand.NewPCG(seed, uint64(20+i)))) })
		others.Go(func() { b.readers(rand.New(rand.NewPCG(seed, uint64(30+i)))) })
	}
	commits := uint64(0)
	for round := 0; round < rounds && !t.Failed(); round++ {
		durability := []string{"relaxed", "durable"}[round%2]
		before := b.acked[0].Load()
		h := b.round(durability, time.Duration(1+r.IntN(400))*time.Millisecond)
		if h.err != "" {
			t.Errorf("round %d: %s", round, h.err)
		}
		commits += b.acked[0].Load() - before
	}
	b.over.Store(true)
	others.Wait()
	t.Logf("%d rounds, %d commits of one writer of %d; %d states found by this process, %d by others, of which %d were killed, and stopped %d times",
		rounds, commits, killWriters, b.looks.Load(), b.heard.Load(), b.kills.Load(), b.stops.Load())
	if !t.Failed() && (b.looks.Load() < int64(rounds) || b.heard.Load() < int64(rounds)/2) {
		t.Error("that is too few")
	}
}

// round lets a process write for a while and kills it.
func (b *besideKilled) round(durability string, life time.Duration) (h heard) {
	killChild(b.T, "kill", []string{b.dir, durability}, func(s string, in func(time.Duration)) {
		if s == "" {
			return
		}
		h.line(s)
		for w, i := range h.acked {
			b.acked[w].Store(max(i, b.acked[w].Load()))
		}
		if s == "r\n" {
			in(life)
		}
	})
	return h
}
