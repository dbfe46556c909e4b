package lifetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// All commits of a burst are relaxed, made by one goroutine as fast as it can, and large enough for
// memtables to wait until the burst is over (pace.Burst).
const (
	burstMemory = 512 * mb
	burstAcks   = 32 // one in so many commits is acknowledged through the pipe
)

// burst puts 3 to 5 KB with each commit.
var burst = ring{keys: 20_000, step: 1, value: func(i uint64) []byte {
	x := mix(i)
	return append(binary.BigEndian.AppendUint64(nil, i), bytes.Repeat(binary.BigEndian.AppendUint64(nil, x), int(375+x%250))...)
}}

// burstWriter is the child: it opens the store, checks it, says what the last commit was ("s i"), and
// commits until it is killed ("a i").
func burstWriter() {
	db, err := cairn.Open(os.Args[1], &cairn.Options{Memory: burstMemory, Durability: cairn.Relaxed})
	i, ok := burst.resume(db, err)
	if !ok {
		return
	}
	for i++; err == nil; i++ {
		if err = db.Update(func(tx *cairn.Tx) error { return burst.commit(tx, i) }); err == nil && i%burstAcks == 0 {
			fmt.Println("a", i)
		}
	}
	fmt.Println("e", err)
}

// burstRound runs a child and kills it up to half a second after it began to write. It returns what the
// child found, and which commit was acknowledged last.
func burstRound(t *testing.T, dir string, r *rand.Rand) (found, acked uint64) {
	t.Helper()
	killChild(t, "burst", []string{dir}, func(s string, in func(time.Duration)) {
		switch {
		case s == "":
		case s[0] == 'e':
			t.Error(s)
		case s[0] == 's':
			fmt.Sscanf(s[2:], "%d", &found)
			acked = found
			in(time.Duration(1+r.IntN(500)) * time.Millisecond)
		case s[0] == 'a':
			fmt.Sscanf(s[2:], "%d", &acked)
		}
	})
	return found, acked
}

// TestKillInBurst: what a burst of relaxed commits has left in many memtables, none of which has been
// flushed, is there after kill -9, in its order and to the last commit that was acknowledged.
func TestKillInBurst(t *testing.T) {
	r := rand.New(rand.NewPCG(testSeed(t), 12))
	dir := filepath.Join(t.TempDir(), "store")
	acked, commits, most := uint64(0), uint64(0), int64(0)
	rounds := of(4, 60)
	for round := range rounds {
		found, now := burstRound(t, dir, r)
		if found < acked || found > acked+2*burstAcks {
			t.Fatalf("round %d: found commit %d, acknowledged was %d", round, found, acked)
		}
		commits, acked, most = commits+now-found, now, max(most, logBytes(dir))
	}
	for range 2 { // after the kill, and after Close
		db, err := cairn.Open(dir, &cairn.Options{Memory: burstMemory, Durability: cairn.Relaxed})
		if err != nil {
			t.Fatal(err)
		}
		last, err := burst.verify(db)
		if err != nil || last < acked || last > acked+2*burstAcks {
			t.Errorf("found commit %d, acknowledged was %d: %v", last, acked, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds: %d commits acknowledged, up to %d MB of log left, space put aside included", rounds, commits, most/mb)
}
