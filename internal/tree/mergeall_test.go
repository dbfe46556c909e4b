package tree

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
	"github.com/cairndb/cairn/internal/manifest"
	"github.com/cairndb/cairn/internal/memtable"
)

// stateOf returns a state of memtables, each of which stands for mem bytes of log, and of
// one table of raw bytes, of which size are on disk; with deletes it hides something.
func stateOf(memtables int, mem, raw, size int64, deletes uint64) *State {
	meta := &base.TableMeta{Num: 1, RawBytes: raw, Size: size, Entries: 10, Deletes: deletes}
	rs := &State{Version: &manifest.Version{}}
	if raw > 0 {
		rs.Version.Levels[manifest.Bottom] = []*base.TableMeta{meta}
		rs.Runs = []Run{{Tables: []*Handle{{Meta: meta}}}}
	}
	for range memtables {
		m := NewMemory(nil, make([]byte, 4096), make([]byte, IndexBytes(4096, 10)), 10, func(*Memory) {})
		m.Replayed = mem
		rs.Layers = append(rs.Layers, &Layer{Mem: m})
	}
	return rs
}

// TestCloseMerge: Close works off a moderate debt, none where nothing is hidden; and it does everything
// where memtables hold as much as tables, as does a store that comes to rest, which does little else.
func TestCloseMerge(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		rs          *State
		close, rest int64
	}{
		{stateOf(0, 0, 100*mb, 50*mb, 0), 0, RestMerge},                                 // one run of puts
		{stateOf(0, 0, 100*mb, 50*mb, 1), closeMerge, RestMerge},                        // deletes
		{stateOf(1, 10*mb, 900*mb, 500*mb, 1), closeMerge, RestMerge},                   // little in memory
		{stateOf(9, 100*mb, 900*mb, 500*mb, 1), (9*100 + 500) * mb, (9*100 + 500) * mb}, // as much as in tables
		{stateOf(9, 100*mb, 901*mb, 500*mb, 1), closeMerge, RestMerge},
		{stateOf(1, 10*mb, mb, mb, 1), closeMerge, restMost}, // most of it lies above the last level
	} {
		if atClose, atRest := c.rs.CloseMerge(), c.rs.MergeAtRest(); atClose != c.close || atRest != c.rest {
			t.Errorf("%d layers, %d bytes in all: %d, want %d; at rest %d, want %d", len(c.rs.Layers), c.rs.HeldBytes(), atClose, c.close, atRest, c.rest)
		}
	}
}

func TestLags(t *testing.T) {
	for _, c := range []struct {
		layers, each, runs int
		limit              int64
		want               bool
	}{
		{0, 0, 0, 80, false}, {2, 90, 6, 80, false}, {3, 90, 0, 80, true}, {0, 0, 7, 80, true},
		{4, 20, 0, 80, false}, {6, 20, 0, 80, false}, {7, 20, 0, 80, true}, // the four oldest may wait
	} {
		rs := &State{Version: &manifest.Version{L0: make([]manifest.Run, c.runs)}}
		for range c.layers {
			rs.Layers = append(rs.Layers, &Layer{Mem: &Memory{Replayed: int64(c.each)}})
		}
		if got := rs.Lags(c.limit); got != c.want {
			t.Errorf("%d layers of %d, %d runs: lags %v", c.layers, c.each, c.runs, got)
		}
	}
}

func TestMayWait(t *testing.T) {
	active := &Memory{Replayed: 1000}
	small := func(bytes int64) *Layer { return &Layer{Mem: &Memory{Replayed: bytes}} }
	for _, c := range []struct {
		layers []*Layer
		want   bool
	}{
		{[]*Layer{{Mem: active}}, true},
		{[]*Layer{{Mem: active}, small(60), small(40)}, true},
		{[]*Layer{{Mem: active}, small(61), small(40)}, false},
		{[]*Layer{{Mem: active}, {}, small(40)}, false}, // tables of a large transaction
	} {
		if got := (&State{Layers: c.layers}).MayWait(active, 100); got != c.want {
			t.Errorf("%d layers: may wait %v", len(c.layers), got)
		}
	}
}

// memoryOf returns a memtable of keys in no order that stands for that many bytes of log.
func memoryOf(keys int, bytes int64) *Memory {
	m := NewMemory(nil, make([]byte, 64<<10), make([]byte, IndexBytes(64<<10, 1000)), 1000, func(*Memory) {})
	m.SetBase(1)
	at := 0
	for i := range keys {
		payload := frame.AppendEntry(nil, base.KindPut, fmt.Appendf(nil, "%03d", i*7%keys), []byte("v"))
		copy(m.Buf[at:], payload)
		entry, n := frame.DecodeEntry(m.Buf[at:])
		m.Insert(at, &entry, base.Hash(entry.Key))
		at += n
	}
	m.Replayed = bytes
	return m
}

// TestSplit: a merge is split into parts of some megabytes, at keys of what holds most, a memtable or a
// run.
func TestSplit(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		processors, keys   int
		inMemory, inTables int64
		want               string
	}{
		{1, 100, 100 * mb, 0, "[]"}, {2, 100, 100 * mb, 0, "[ 050]"}, {4, 100, 100 * mb, 0, "[ 025 050 075]"},
		{4, 100, 3*splitBytes - 1, 0, "[ 050]"}, {4, 100, 2*splitBytes - 1, 0, "[]"},
		{2, 100, 100 * mb, 101 * mb, "[ m]"}, {2, 100, 100 * mb, 100 * mb, "[ 050]"}, {2, 0, 0, 100 * mb, "[ m]"},
		{4, 3, 100 * mb, 0, "[]"}, {4, 0, 100 * mb, 0, "[]"},
	} {
		rs := stateOf(0, 0, 0, 0, 0)
		if half := c.inTables / 2; half > 0 {
			left := &base.TableMeta{Num: 1, RawBytes: half, Smallest: []byte("a")}
			right := &base.TableMeta{Num: 2, RawBytes: half, Smallest: []byte("m")}
			rs.Version.Levels[manifest.Bottom] = []*base.TableMeta{left, right}
			rs.Runs = []Run{NewRun([]*Handle{{Meta: left}, {Meta: right}})}
		}
		rs.Layers = []*Layer{{Mem: memoryOf(1, 0)}, {Mem: memoryOf(c.keys, c.inMemory)}, {Mem: memoryOf(2, 0)}}
		if got := fmt.Sprintf("%s", rs.Split(c.processors)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	rs := stateOf(0, 0, 0, 0, 0)
	rs.Layers = []*Layer{{Mem: memoryOf(100, 100*mb)}, {Seq: 1}}
	if got := rs.Split(2); len(got) != 1 {
		t.Errorf("with the tables of a large transaction: %q", got)
	}
}

// TestLargeRecords: it is the average that counts, of what is in memtables.
func TestLargeRecords(t *testing.T) {
	for _, c := range []struct {
		memtables []*Memory
		want      bool
	}{
		{nil, false},
		{[]*Memory{memoryOf(100, 100*largeRecord)}, false},
		{[]*Memory{memoryOf(100, 100*largeRecord+1)}, true},
		{[]*Memory{memoryOf(10, 60*largeRecord), memoryOf(50, 0)}, false},
		{[]*Memory{memoryOf(10, 61*largeRecord), memoryOf(50, 0)}, true},
	} {
		rs := stateOf(0, 0, 1<<30, 1<<30, 0)
		for _, m := range c.memtables {
			rs.Layers = append(rs.Layers, &Layer{Mem: m})
		}
		if got := rs.LargeRecords(); got != c.want {
			t.Errorf("%d memtables, %d bytes: %v", len(c.memtables), rs.LogBytes(), got)
		}
	}
}

// TestLiveBytesOfWhatGoes: whoever looks at memtables without the commit lock finds all records, or none: their commits fail meanwhile.
func TestLiveBytesOfWhatGoes(t *testing.T) {
	const records = 20_000
	m, buf := &Memory{Table: memtable.NewGrowing(1), Replayed: 1 << 20}, []byte(nil)
	for i := range records {
		at := len(buf)
		buf = frame.AppendEntry(buf, base.KindPut, fmt.Append(nil, "key", i), nil)
		m.SetBuffer(buf)
		entry, _ := frame.DecodeEntry(buf[at:])
		m.Insert(at, &entry, base.Hash(entry.Key))
	}
	rs := &State{Layers: []*Layer{{Mem: m}}}
	var stop atomic.Bool
	var goes sync.WaitGroup
	goes.Go(func() {
		for !stop.Load() {
			m.Truncate(0)
			m.Truncate(records)
		}
	})
	for range 2000 {
		rs.LiveBytes()
	}
	stop.Store(true)
	goes.Wait()
}
