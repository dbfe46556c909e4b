package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
)

func TestMeter(t *testing.T) {
	var screen bytes.Buffer
	a := &app{err: &screen, errIsTTY: true}
	m := a.meter("verifying")
	m.add(10, 100)
	if screen.Len() > 0 {
		t.Errorf("short work is shown: %q", screen.String())
	}
	m.from = time.Now()
	m.add(40, 100)
	if s := screen.String(); !strings.Contains(s, "verifying") || !strings.Contains(s, "50%") {
		t.Errorf("screen %q", s)
	}
	m.add(1000, 100) // more than was announced
	m.clear()
	m.clear()
	if s := screen.String(); strings.Contains(s, "\n") {
		t.Errorf("screen %q", s)
	}
}

func TestMeterNeedsTerminal(t *testing.T) {
	var screen bytes.Buffer
	m := (&app{err: &screen}).meter("verifying")
	m.from = time.Now()
	m.set(50, 100)
	m.clear()
	if screen.Len() > 0 {
		t.Errorf("%q", screen.String())
	}
}

// What Verify reads is about what the tables have: the meter tells the truth.
func TestVerifyReadsWhatIsCounted(t *testing.T) {
	value := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{}).Read(value) // does not compress
	dir := newStore(t)
	db := openStore(t, dir, nil)
	b := cairn.NewBatch()
	for i := 0; i < len(value); i += 1000 {
		b.Put(fmt.Appendf(nil, "%08d", i), value[i:min(i+1000, len(value))])
	}
	if err := errors.Join(db.Write(b), db.Close()); err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	db = openStore(t, dir, &cairn.Options{ReadOnly: true, FS: &countingFS{FS: vfs.OS(), read: func(n int) { read.Add(int64(n)) }}})
	read.Store(0)
	if _, err := db.Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
	// More than the tables have, but not much: indexes may be built meanwhile.
	total := db.Stats().DiskBytes
	if got := read.Load(); total < 8<<20 || got < total*9/10 || got > total*3/2 {
		t.Errorf("%d bytes were read, the tables have %d", got, total)
	}
}
