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

// Each commit writes all keys anew, more than a frame of the log could hold in format version 1.
const (
	longMemory = 2048 * mb
	longKeys   = 10_000
	longValue  = 2_400
)

// longOptions are those of a round: every other one is durable.
func longOptions(durability string) *cairn.Options {
	o := &cairn.Options{Memory: longMemory}
	if durability == "relaxed" {
		o.Durability = cairn.Relaxed
	}
	return o
}

// longPair returns the i-th pair of a version.
func longPair(i int, version uint64) (key, value []byte) {
	x := mix(uint64(i)<<32 | version)
	value = binary.BigEndian.AppendUint64(nil, version)
	return binary.BigEndian.AppendUint32(nil, uint32(i)), append(value, bytes.Repeat(binary.BigEndian.AppendUint64(nil, x), longValue/8)...)
}

// longVersion returns which version all pairs have, 0 if there is none.
func longVersion(db *cairn.DB) (version uint64, err error) {
	n := 0
	err = db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			if n == 0 {
				version = binary.BigEndian.Uint64(v)
			}
			key, value := longPair(n, version)
			if !bytes.Equal(k, key) || !bytes.Equal(v, value) {
				return fmt.Errorf("pair %d is not that of version %d", n, version)
			}
			n++
		}
		return tx.Err()
	})
	if err == nil && n != 0 && n != longKeys {
		err = fmt.Errorf("%d pairs of version %d", n, version)
	}
	return version, err
}

// longWriter is the child: it opens the store, says which version it found ("s v"), and writes the next
// ones ("a v") until it is killed.
func longWriter() {
	db, err := cairn.Open(os.Args[1], longOptions(os.Args[2]))
	version := uint64(0)
	if err == nil {
		if version, err = longVersion(db); err == nil {
			fmt.Println("s", version)
		}
	}
	for b := cairn.NewBatch(); err == nil; b.Reset() {
		version++
		for i := range longKeys {
			b.Put(longPair(i, version))
		}
		if err = db.Write(b); err == nil {
			fmt.Println("a", version)
		}
	}
	fmt.Println("e", err)
}

// TestKillInLongFrame: a commit that takes one long frame of the log is there after kill -9 as a whole or
// not at all, and is there if it was acknowledged.
func TestKillInLongFrame(t *testing.T) {
	r := rand.New(rand.NewPCG(testSeed(t), 13))
	dir := filepath.Join(t.TempDir(), "store")
	acked, commits, flight := uint64(0), uint64(0), 0
	rounds := of(4, 40)
	for round := range rounds {
		started, found := false, uint64(0)
		durability := []string{"relaxed", "durable"}[round%2]
		before := acked
		killChild(t, "long", []string{dir, durability}, func(s string, in func(time.Duration)) {
			switch {
			case s == "":
			case s[0] == 'e':
				t.Error(s)
			case s[0] == 's':
				started = true
				fmt.Sscanf(s[2:], "%d", &found)
				in(time.Duration(1+r.IntN(400)) * time.Millisecond)
			case s[0] == 'a':
				fmt.Sscanf(s[2:], "%d", &acked)
			}
		})
		if !started || found < before || found > before+1 {
			t.Fatalf("round %d: found version %d, acknowledged was %d", round, found, before)
		}
		if found > before {
			flight++
		}
		acked = max(acked, found)
		commits += acked - before
	}
	for range 2 { // after the kill, and after Close
		db, err := cairn.Open(dir, longOptions("durable"))
		if err != nil {
			t.Fatal(err)
		}
		if found, err := longVersion(db); err != nil || found < acked || found > acked+1 {
			t.Errorf("found version %d, acknowledged was %d: %v", found, acked, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds: %d commits of %d MB, %d of them not acknowledged", rounds, commits, longKeys*longValue/mb, flight)
}
