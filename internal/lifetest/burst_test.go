package lifetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cairndb/cairn"
)

// Commit i of a burst puts a value to key i%burstKeys, or deletes it, and notes that it was the last.
// All are relaxed, made by one goroutine as fast as it can, and large enough for memtables to wait
// until the burst is over (pace.Burst).
const (
	burstKeys   = 20_000
	burstMemory = 512 * mb
	burstAcks   = 32 // one in so many commits is acknowledged through the pipe
)

func burstKey(i uint64) []byte { return fmt.Appendf(nil, "key%06d", i%burstKeys) }

// burstValue is what commit i puts, 3 to 5 KB; nil if it deletes.
func burstValue(i uint64) []byte {
	if i%17 == 0 {
		return nil
	}
	x := mix(i)
	return append(binary.BigEndian.AppendUint64(nil, i), bytes.Repeat(binary.BigEndian.AppendUint64(nil, x), int(375+x%250))...)
}

func burstCommit(tx *cairn.Tx, i uint64) (err error) {
	if v := burstValue(i); v == nil {
		err = tx.Delete(burstKey(i))
	} else {
		err = tx.Put(burstKey(i), v)
	}
	return errors.Join(err, tx.Put([]byte("last"), binary.BigEndian.AppendUint64(nil, i)))
}

// verifyBurst returns the last commit of a burst, having checked that the store holds just what it and
// all before it left.
func verifyBurst(db *cairn.DB) (last uint64, err error) {
	err = db.View(func(tx *cairn.Tx) error {
		v, err := tx.Get([]byte("last"))
		if errors.Is(err, cairn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		last = binary.BigEndian.Uint64(v)
		left := map[string][]byte{}
		for k, v := range tx.Scan(cairn.Prefix([]byte("key"))) {
			if i := binary.BigEndian.Uint64(v); !bytes.Equal(v, burstValue(i)) || !bytes.Equal(k, burstKey(i)) {
				return fmt.Errorf("key %q has not what commit %d put", k, i)
			}
			left[string(k)] = bytes.Clone(v[:8])
		}
		for i := last; i > 0 && last-i < burstKeys; i-- {
			v, ok := left[string(burstKey(i))]
			if ok != (burstValue(i) != nil) || ok && binary.BigEndian.Uint64(v) != i {
				return fmt.Errorf("after commit %d key %q has what %x put, not %d", last, burstKey(i), v, i)
			}
			delete(left, string(burstKey(i)))
		}
		if len(left) > 0 {
			return fmt.Errorf("after commit %d there are %d keys too many", last, len(left))
		}
		return tx.Err()
	})
	return last, err
}

// burstWriter is the child: it opens the store, checks it, says what the last commit was ("s i"), and
// commits until it is killed ("a i").
func burstWriter() {
	db, err := cairn.Open(os.Args[1], &cairn.Options{Memory: burstMemory, Durability: cairn.Relaxed})
	if err != nil {
		fmt.Println("e open:", err)
		return
	}
	i, err := verifyBurst(db)
	if err != nil {
		fmt.Println("e", err)
		return
	}
	fmt.Println("s", i)
	for i++; err == nil; i++ {
		if err = db.Update(func(tx *cairn.Tx) error { return burstCommit(tx, i) }); err == nil && i%burstAcks == 0 {
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
		last, err := verifyBurst(db)
		if err != nil || last < acked || last > acked+2*burstAcks {
			t.Errorf("found commit %d, acknowledged was %d: %v", last, acked, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds: %d commits acknowledged, up to %d MB of log left, space put aside included", rounds, commits, most/mb)
}
