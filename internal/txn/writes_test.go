package txn

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

// TestWritesMemoryIsKept: what a large transaction has written to serves the next one, unless somebody may still read it.
func TestWritesMemoryIsKept(t *testing.T) {
	e := openEngine(t, newWatchedFS(), 64<<20)
	value := make([]byte, 1000)
	write := func(size int, read bool) {
		t.Helper()
		tx, err := Begin(e, true)
		check(t, err)
		defer tx.Recycle()
		for at := 0; at < size; at += 1000 {
			check(t, tx.Put(key(at), value))
		}
		if read {
			_, err = tx.Get(key(0))
			check(t, err)
		}
		_, err = tx.Commit()
		check(t, err)
	}
	kept := func(least, most int) {
		t.Helper()
		buf := e.TakeWrites(0)
		if cap(buf) < least || cap(buf) > most {
			t.Errorf("%d bytes are kept, want %d to %d", cap(buf), least, most)
		}
		if cap(buf) > 0 {
			e.KeepWrites(buf)
		}
	}
	write(10_000, false) // whose transaction keeps it
	kept(0, 0)
	write(200_000, true)
	kept(0, 0)
	write(200_000, false)
	kept(200_000, 500_000)
	write(1_000_000, false)
	kept(1_000_000, 2_500_000)
	write(200_000, false)
	kept(1_000_000, 2_500_000)
	buf := e.TakeWrites(0)
	e.KeepWrites(buf)
	write(900_000, false)
	if e.CountedWrites() != 0 { // which would keep others from remembering what they read
		t.Error(fmt.Sprint(e.CountedWrites(), " bytes are counted though no transaction is open"))
	}
	again := e.TakeWrites(0)
	if &again[:1][0] != &buf[:1][0] {
		t.Error("it was not used again")
	}
	e.KeepWrites(again)
	write(200_000, true) // which takes it, and does not give it back
	kept(0, 0)
	if e.CountedWrites() != 0 {
		t.Error(fmt.Sprint(e.CountedWrites(), " bytes are counted"))
	}
}

// TestBufferWhileIterating: an iterator keeps the buffer of the writes it walks until there is a spill, and none after
// it: one that stays open does not make every spill fetch fresh memory.
func TestBufferWhileIterating(t *testing.T) {
	e := openEngine(t, newWatchedFS(), 1<<20)
	tx, err := Begin(e, true)
	check(t, err)
	defer tx.Rollback()
	put := func(spills int) {
		t.Helper()
		for i := 0; len(tx.spills) < spills; i++ {
			check(t, tx.Put(key(i), make([]byte, 1000)))
		}
	}
	check(t, tx.Put(key(0), nil))
	open := tx.NewIter(bucket, base.PrefixEnd(bucket))
	if !open.First() || !tx.isLent() {
		t.Fatal("the buffer is not kept for an iterator")
	}
	put(1)
	if tx.isLent() {
		t.Error("after a spill the buffer is kept for an iterator of the one before")
	}
	check(t, tx.Put(key(0), nil))
	newer := tx.NewIter(bucket, base.PrefixEnd(bucket))
	open.Close()
	open.Recycle()
	if !tx.isLent() {
		t.Error("the buffer is not kept for the newer iterator")
	}
	newer.Close()
	if newer.Recycle(); tx.isLent() {
		t.Error("the buffer is kept for nobody")
	}
}
