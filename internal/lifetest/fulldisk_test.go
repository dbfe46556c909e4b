package lifetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

const (
	smallDisk  = "CAIRN_DISK" // a directory on a small file system that nobody else uses
	mostDisk   = 2 << 30      // more is not small: the test fills it
	diskMemory = 128 * mb
	diskAcks   = 16
	healing    = time.Minute // within which commits go on, once there is space again
)

// noise is a ring of values of 0.6 to 1.6 KB that cannot be compressed.
func noise(keys uint64) ring {
	return ring{keys: keys, step: 1_000_003, value: func(i uint64) []byte {
		v := binary.BigEndian.AppendUint64(nil, i)
		for n, x := 70+mix(i)%128, i; n > 0; n-- {
			x = mix(x)
			v = binary.BigEndian.AppendUint64(v, x)
		}
		return v
	}}
}

// diskWriter is the child: store, durability, number of keys. It opens the store, checks it, says what
// the last commit was ("s i"), and commits until it is killed ("a i"). What finds no space is tried
// again until it does ("n i").
func diskWriter() {
	keys, _ := strconv.Atoi(os.Args[3])
	x, opts := noise(uint64(keys)), cairn.Options{Memory: diskMemory}
	if os.Args[2] == "relaxed" {
		opts.Durability = cairn.Relaxed
	}
	refused := uint64(0)
	noSpace := func(err error, i uint64) bool {
		if !errors.Is(err, cairn.ErrNoSpace) {
			return false
		}
		fmt.Println("n", i)
		refused++
		time.Sleep(time.Duration(min(refused, 20)) * time.Millisecond)
		return true
	}
	db, err := cairn.Open(os.Args[1], &opts)
	for noSpace(err, 0) {
		db, err = cairn.Open(os.Args[1], &opts)
	}
	i, ok := x.resume(db, err)
	if !ok {
		return
	}
	for i++; ; {
		err := db.Update(func(tx *cairn.Tx) error { return x.commit(tx, i) })
		switch {
		case noSpace(err, i):
			continue
		case err != nil:
			fmt.Println("e", err)
			return
		}
		refused = 0
		if i%diskAcks == 0 {
			fmt.Println("a", i)
		}
		i++
	}
}

// hog is another program's file, which takes what the disk has left.
type hog string

func (h hog) release() { os.Remove(string(h)) }

// grab takes all of the disk but about left bytes.
func (h hog) grab(left int64) {
	f, err := os.OpenFile(string(h), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // no space for a name
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); ; {
		if free, _ := vfs.FreeSpace(vfs.OS(), filepath.Dir(string(h))); free < left+int64(len(chunk)) {
			return
		}
		if _, err := f.Write(chunk); err != nil {
			return
		}
	}
}

// diskRound is one child's life: it writes for a while, then the hog takes the disk, and either the
// child is killed while it is full, or goes on when it is not any more, and is killed then.
type diskRound struct {
	hog                   hog
	left                  int64 // what the hog leaves
	before, during, after time.Duration
	killFull              bool

	found, acked    atomic.Uint64
	opened, grabbed atomic.Bool
	refused, hogged uint64 // commits without space: all, and while the hog had it
	errors          string
	ended           chan struct{} // closed when the child has
}

func (d *diskRound) line(s string) {
	var i uint64
	fmt.Sscanf(s[1:], "%d", &i)
	switch s[0] {
	case 's':
		d.found.Store(i)
		d.acked.Store(i)
		d.opened.Store(true)
	case 'a':
		d.acked.Store(i)
	case 'n':
		d.refused++
		if d.grabbed.Load() {
			d.hogged++
		}
	default:
		d.errors += s
	}
}

// await waits until ok holds, or the child has ended, and says what is missing if it does not in time.
func (d *diskRound) await(t *testing.T, what string, ok func() bool) {
	for end := time.After(healing); !ok(); {
		select {
		case <-d.ended:
			return
		case <-end:
			t.Errorf("%s: not within %v of having space", what, healing)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// script does to the child what is to be done, and gives kill how long it may still live.
func (d *diskRound) script(t *testing.T, kill func(time.Duration)) {
	d.grabbed.Store(true)
	time.Sleep(d.after) // the child before may have been killed on a full disk: this one waits
	d.hog.release()
	d.grabbed.Store(false)
	kill(2 * healing)
	d.await(t, "open", d.opened.Load)
	time.Sleep(d.before)
	d.grabbed.Store(true)
	for end := time.Now().Add(d.during); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		d.hog.grab(d.left) // and what the store has given back since
	}
	if !d.killFull {
		d.hog.release()
		d.grabbed.Store(false)
		seen := d.acked.Load()
		kill(2 * healing)
		d.await(t, "commits", func() bool { return d.acked.Load() > seen })
		time.Sleep(d.after)
	}
	kill(0)
}

// TestFullDisk: on a disk that is full again and again, because another program takes what is left of
// it, and whatever the instant at which kill -9 comes, nothing acknowledged is missing, nothing that
// was refused is there, and commits go on by themselves when there is space again.
func TestFullDisk(t *testing.T) {
	disk := os.Getenv(smallDisk)
	if disk == "" {
		t.Skip("NOT RUN: needs a small file system of its own; scripts/small-disk.sh makes one")
	}
	free, known := vfs.FreeSpace(vfs.OS(), disk)
	if !known || free > mostDisk {
		t.Fatalf("%s has %d bytes free: this test fills it, so it has to be small", disk, free)
	}
	r := rand.New(rand.NewPCG(testSeed(t), 13))
	x := noise(uint64(free / 5 / 1100))
	dir, h := filepath.Join(disk, "store"), hog(filepath.Join(disk, "hog"))
	t.Cleanup(func() { h.release(); os.RemoveAll(dir) })
	some := func(most int) time.Duration { return time.Duration(1+r.IntN(most)) * time.Millisecond }
	acked, commits, refused, unasked, killedFull := uint64(0), uint64(0), uint64(0), uint64(0), 0
	for round := range of(6, 60) {
		durability := [...]string{"relaxed", "durable"}[round%2]
		d := diskRound{hog: h, left: int64(r.IntN(4*mb) * r.IntN(2)), before: some(3000), during: some(3000), after: some(500),
			killFull: r.IntN(3) == 0, ended: make(chan struct{})}
		var script sync.WaitGroup
		killChild(t, "disk", []string{dir, durability, strconv.FormatUint(x.keys, 10)}, func(s string, in func(time.Duration)) {
			if s != "" {
				d.line(s)
			} else {
				script.Go(func() { d.script(t, in) })
			}
		})
		close(d.ended)
		script.Wait()
		found := d.found.Load()
		if d.errors != "" || !d.opened.Load() || found < acked || found > acked+2*diskAcks {
			t.Fatalf("round %d: found commit %d, acknowledged was %d; opened: %v, %d tries refused; %s", round, found, acked, d.opened.Load(), d.refused, d.errors)
		}
		acked = d.acked.Load()
		commits, refused, unasked = commits+acked-found, refused+d.refused, unasked+d.refused-d.hogged
		if d.killFull {
			killedFull++
		}
		t.Logf("round %d, %s: %d commits; %d tries refused, %d while the hog had the disk", round, durability, acked-found, d.refused, d.hogged)
	}
	h.release()
	judgeFullDisk(t, dir, x, acked)
	t.Logf("%d MB of disk, %d keys: %d commits acknowledged, %d tries refused, %d of them while nobody else had the disk; %d children killed while it was full",
		free/mb, x.keys, commits, refused, unasked, killedFull)
}

// judgeFullDisk checks the store after the last kill, and after Close.
func judgeFullDisk(t *testing.T, dir string, x ring, acked uint64) {
	for range 2 {
		db, err := cairn.Open(dir, &cairn.Options{Memory: diskMemory})
		if err != nil {
			t.Fatal(err)
		}
		last, err := x.verify(db)
		if err != nil || last < acked || last > acked+2*diskAcks {
			t.Errorf("found commit %d, acknowledged was %d: %v", last, acked, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
