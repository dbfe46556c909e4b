package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// Do runs a workload on a driver, or says why it does not. A floor, which cannot read,
// does only the writes of it, and has reasons in place of all other figures.
func Do(w Workload, rec *Recorder, d engine.Driver, dir string, p Params) error {
	if w.leavesOut(p, d.Info.Name) {
		rec.noneOf(fmt.Sprintf("the article did not measure it; of %d keys it does the sound variant only (-n %d for this one)", p.N, p.N), w.Columns)
		return nil
	}
	if why, no := d.Info.Cannot[engine.CanGet]; no && !w.WritesOnly {
		if err := writesOf(w.Name)(rec, d, dir, p); err != nil {
			return err
		}
		for _, c := range append(w.Columns, Common...) {
			if _, has := rec.Metrics[c.Key]; !has {
				rec.None(why, c.Key)
			}
		}
		return nil
	}
	return w.Run(rec, d, dir, p)
}

// subject is the engine that does everything.
const subject = "cairn"

// leavesOut reports whether an engine does not do a cell because no article says what to
// compare it with.
func (w Workload) leavesOut(p Params, engine string) bool {
	return p.ArticleOnly && engine != subject && !slices.Contains(w.Article, engine)
}

// writesOf finds what a floor does of a workload.
func writesOf(name string) func(*Recorder, engine.Driver, string, Params) error {
	switch name {
	case "w1":
		return floorPuts
	case "w4":
		return floorBatches
	}
	return func(*Recorder, engine.Driver, string, Params) error { return nil }
}

// floorRun is the writes of a workload on a floor.
type floorRun struct {
	*wholeSet
	written []floorPass
}

type floorPass struct {
	order   []int32
	version uint64
}

func openFloor(rec *Recorder, d engine.Driver, dir string, p Params) (*floorRun, error) {
	f := &floorRun{wholeSet: &wholeSet{expectation: expect(p), rec: rec, p: p, d: d, dir: dir}}
	rec.Begin()
	return f, f.open()
}

// floorPuts are the puts of W1: in order, then new values in another order.
func floorPuts(rec *Recorder, d engine.Driver, dir string, p Params) error {
	f, err := openFloor(rec, d, dir, p)
	if err != nil {
		return err
	}
	var total float64
	for i, key := range []string{"put", "put2"} {
		order := data.Sequence(f.n)
		if i > 0 {
			order = data.Order(f.n, p.Seed, 3)
		}
		span, err := rec.Phase(key, f.n, func() error { return putOneByOne(f.store, set{f.expectation, order}.pairs) })
		if err != nil {
			return err
		}
		total += float64(span.Time)
		f.wrote(order)
	}
	rec.Set("put_total", total)
	rec.Note("its file keeps both rounds of puts")
	return f.end(total)
}

// floorBatches are the batches of W4: the set, then the set with new values.
func floorBatches(rec *Recorder, d engine.Driver, dir string, p Params) error {
	f, err := openFloor(rec, d, dir, p)
	if err != nil {
		return err
	}
	order := data.Order(f.n, p.Seed, 4)
	span, err := rec.Phase("put", f.n, func() error { return f.putSet(order) })
	if err != nil {
		return err
	}
	f.wrote(order)
	again := data.Order(f.n, p.Seed, 5)
	if _, err := rec.Phase("again", f.n, func() error { return f.putSet(again) }); err != nil {
		return err
	}
	f.wrote(again)
	rec.Note("its close is after the second put, and its sizes are of both")
	return f.end(float64(span.Time))
}

// wrote remembers a pass; the next has new values.
func (f *floorRun) wrote(order []int32) {
	f.written = append(f.written, floorPass{order, f.version})
	f.version++
}

func (f *floorRun) end(puts float64) error {
	closing, err := Measure(f.store.Close)
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	f.rec.Set("close", float64(closing.Time))
	f.rec.Set("put_close", puts+float64(closing.Time))
	if err := recordDisk(f.rec, f.dir, "disk", "disk_allocated"); err != nil {
		return err
	}
	f.rec.End()
	return f.verify()
}

// verify reads the file and compares every byte. It is not timed.
func (f *floorRun) verify() error {
	records, err := engine.FloorRecords(f.dir)
	if err != nil {
		return err
	}
	defer records.Close()
	in := bufio.NewReaderSize(records, 1<<20)
	var got []byte
	for _, pass := range f.written {
		f.version = pass.version
		for _, i := range pass.order {
			want := append(bytes.Clone(f.keys.At(int(i))), f.value(uint64(i))...)
			got = append(got[:0], make([]byte, len(want))...)
			if _, err := io.ReadFull(in, got); err != nil || !bytes.Equal(got, want) {
				return wrong("key %d is not in the file as it was written: %v", i, err)
			}
		}
	}
	return nil
}
