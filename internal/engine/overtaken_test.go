package engine

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/mvcc"
)

// TestOvertakenCommits: while a commit looked at what had come since it had read, as much came again, and so it went on as
// long as others committed. After some looks the others wait for one, whatever becomes of it.
func TestOvertakenCommits(t *testing.T) {
	errClosing := errors.New("the store stops")
	for name, c := range map[string]struct {
		key  string // that comes during the last look before the others wait
		stop error
		want error
	}{
		"nothing that was read changes": {key: "other"},
		"what was read changes":         {key: "read", want: base.ErrConflict},
		"the store is poisoned":         {key: "other", stop: errClosing, want: base.ErrPoisoned},
	} {
		t.Run(name, func(t *testing.T) { testOvertaken(t, c.key, c.stop, c.want) })
	}
}

func testOvertaken(t *testing.T, key string, stop, want error) {
	cfg, _ := onFaults()
	e, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var entries [][]byte
	size := 0
	for i := range lockedRecords + 1 {
		entries = append(entries, frame.AppendEntry(nil, base.KindPut, fmt.Appendf(nil, "k%05d", i), nil))
		size += len(entries[i])
	}
	others := func() {
		if _, err := e.Commit(&Write{Entries: entries, Bytes: size, Count: len(entries)}); err != nil {
			t.Error(err)
		}
	}
	const most = 10 * freeLooks
	var reads mvcc.ReadSet
	read := append(bytes.Clone(testBucket), "read"...)
	reads.AddKey(read, base.Hash(read))
	snapshot := e.Visible()
	came, waited, done := 0, false, make(chan error, 1)
	defer func() { haveLooked = func() {} }()
	haveLooked = func() {
		e.commit.mu.Lock()
		held := e.commit.held
		e.commit.mu.Unlock()
		switch {
		case came == most: // enough was seen
		case !held:
			if came++; came == freeLooks {
				if err := commitOne(e, base.KindPut, []byte(key), nil); err != nil {
					t.Error(err)
				}
			}
			others()
		default:
			came, waited = most, true
			go func() { done <- commitOne(e, base.KindPut, []byte("behind"), nil) }()
			select {
			case err := <-done:
				done <- err
				t.Errorf("a commit that should wait did not: %v", err)
			case <-time.After(20 * time.Millisecond):
			}
			if stop != nil {
				e.poisonNow(stop)
			}
		}
	}
	others()
	entry := frame.AppendEntry(nil, base.KindPut, []byte("written"), nil)
	looks := &Write{Entries: [][]byte{entry}, Bytes: len(entry), Count: 1, Reads: &reads, Snapshot: snapshot}
	if _, err := e.Commit(looks); !errors.Is(err, want) || want == nil && err != nil {
		t.Errorf("%v, want %v", err, want)
	}
	if !waited {
		t.Fatalf("nobody else waited for the last of %d looks", looks.looks)
	}
	if err := <-done; !errors.Is(err, base.ErrPoisoned) && stop != nil || err != nil && stop == nil {
		t.Errorf("who waited: %v", err)
	}
}
