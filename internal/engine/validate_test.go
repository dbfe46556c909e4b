//go:build !race

package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/mvcc"
)

// The ranges that a transaction has read are put in order before it has the commit lock, for which others wait. (What it
// looks at is written by whoever waits for that lock, of which the race detector knows nothing.)
func TestRangesAreInOrderBeforeTheLock(t *testing.T) {
	cfg, _ := onFaults()
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var reads mvcc.ReadSet
	for i := range 1000 {
		reads.AddRange(fmt.Appendf(nil, "%03d", 999-i), fmt.Appendf(nil, "%03d+", 999-i))
	}
	if reads.InOrder() {
		t.Fatal("they are in order as they come")
	}
	entry := frame.AppendEntry(nil, base.KindPut, []byte("key"), nil)
	release := hold(t, &e.commit.mu)
	done := make(chan error)
	go func() {
		_, err := e.Commit(&Write{Entries: [][]byte{entry}, Bytes: len(entry), Count: 1, Reads: &reads})
		done <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); !reads.InOrder(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the commit waits for the lock with ranges that are not in order")
			break
		}
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
