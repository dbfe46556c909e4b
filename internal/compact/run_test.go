package compact

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/tombstone"
)

// listing is an Output that keeps what it is given.
type listing struct {
	rows      []iterator.Entry
	tombs     []tombstone.Tombstone
	bytes     int64
	written   bool
	finished  bool
	abandoned bool
	fail      error // of Add
	unwritten error // of WriteOut
}

func (l *listing) Add(key []byte, seq uint64, kind base.Kind, value []byte) error {
	l.rows = append(l.rows, iterator.Entry{Key: bytes.Clone(key), Seq: seq, Kind: kind, Value: bytes.Clone(value)})
	l.bytes += int64(len(key) + len(value))
	return l.fail
}

func (l *listing) AddRangeDelete(low, high []byte, seq uint64) error {
	l.tombs = append(l.tombs, tombstone.Tombstone{Low: bytes.Clone(low), High: bytes.Clone(high), Seq: seq})
	return nil
}

func (l *listing) EstimatedBytes() int64 { return l.bytes }

func (l *listing) Finish() (base.TableMeta, error) {
	l.finished = true
	m := base.TableMeta{Entries: uint64(len(l.rows)), RangeDeletes: uint64(len(l.tombs))}
	for i, r := range l.rows {
		if i == 0 {
			m.Smallest = r.Key
		}
		m.Largest = r.Key
	}
	for _, ts := range l.tombs {
		if m.Smallest == nil || bytes.Compare(ts.Low, m.Smallest) < 0 {
			m.Smallest = ts.Low
		}
		if bytes.Compare(ts.High, m.Largest) > 0 {
			m.Largest, m.LargestExclusive = ts.High, true
		}
	}
	return m, nil
}

func (l *listing) WriteOut() error { l.written = true; return l.unwritten }

func (l *listing) Abandon() error { l.abandoned = true; return nil }

// input is a random history of a few keys: versions and range tombstones with
// distinct sequences 1..n.
type input struct {
	rows  []iterator.Entry
	tombs []tombstone.Tombstone
	n     uint64
}

func keyName(i int) []byte { return fmt.Appendf(nil, "k%02d", i) }

func randomInput(r *rand.Rand) *input {
	in := &input{n: uint64(1 + r.IntN(60))}
	for seq := uint64(1); seq <= in.n; seq++ {
		k := r.IntN(12)
		switch p := r.IntN(10); {
		case p < 6:
			in.rows = append(in.rows, iterator.Entry{Key: keyName(k), Seq: seq, Kind: base.KindPut, Value: fmt.Appendf(nil, "v%d", seq)})
		case p < 8:
			in.rows = append(in.rows, iterator.Entry{Key: keyName(k), Seq: seq, Kind: base.KindDelete})
		default:
			in.tombs = append(in.tombs, tombstone.Tombstone{Low: keyName(k), High: keyName(k + 1 + r.IntN(5)), Seq: seq})
		}
	}
	iterator.Sort(in.rows)
	return in
}

// read returns what a reader at snapshot sees of key: the value, and whether
// anything at all is known of it (a delete is, and hides what lies below).
func read(rows []iterator.Entry, tombs []tombstone.Tombstone, key []byte, snapshot uint64) (value string, known bool) {
	best, kind := uint64(0), base.KindDelete
	for _, e := range rows {
		if bytes.Equal(e.Key, key) && e.Seq <= snapshot && (!known || e.Seq > best) {
			best, kind, value, known = e.Seq, e.Kind, string(e.Value), true
		}
	}
	for _, ts := range tombs {
		if ts.Seq <= snapshot && ts.Contains(key) && (!known || ts.Seq > best) {
			best, kind, value, known = ts.Seq, base.KindDelete, "", true
		}
	}
	if kind == base.KindDelete {
		value = ""
	}
	return value, known
}

// TestMergeKeepsWhatReadersSee merges random histories under random snapshots: no
// reader may see a difference, tables must not overlap, and with nothing below no
// garbage of the oldest stripe may stay.
func TestMergeKeepsWhatReadersSee(t *testing.T) {
	unfinished := 0 // tables, when all was read
	defer func() {
		if unfinished < 1000 {
			t.Errorf("everything was read before the last table was finished %d times only", unfinished)
		}
	}()
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 5))
		in := randomInput(r)
		var snaps tombstone.Stripes
		for range r.IntN(4) {
			snaps = append(snaps, uint64(r.IntN(int(in.n)+1)))
		}
		slices.Sort(snaps)
		snaps = slices.Compact(snaps)
		var outs []*listing
		var metas []base.TableMeta
		m := &Merge{
			Tombstones: tombstone.Build(in.tombs), Snapshots: snaps,
			Bottom: r.IntN(2) == 0, TargetBytes: int64(1 + r.IntN(60)),
			Create: func() (Output, error) { outs = append(outs, &listing{}); return outs[len(outs)-1], nil },
		}
		var part *Merge
		for low, parts := []byte(nil), r.IntN(3); part == nil || part.High != nil; parts-- { // one after the other, as if side by side
			part = &Merge{
				Rows: iterator.NewSliceIter(in.rows), Tombstones: m.Tombstones, Snapshots: snaps, Bottom: m.Bottom, TargetBytes: m.TargetBytes, Create: m.Create,
				Low: low,
			}
			if parts > 0 {
				low = keyName(r.IntN(14))
				if part.High = low; bytes.Compare(part.Low, low) >= 0 {
					part.High = nil
				}
			}
			read := 0 // once, when all that is left to do of the last table is to finish it
			part.Read = func() {
				read++
				if n := len(outs); n > 0 && !outs[n-1].finished {
					if unfinished++; !outs[n-1].written {
						t.Fatalf("seed %d: said to be read, but the last table is not written out", seed)
					}
				}
			}
			some, err := part.Run()
			metas = append(metas, some...)
			if err != nil || len(metas) != len(outs) || len(part.Leftovers()) != len(some) || read != 1 {
				t.Fatalf("seed %d: %d tables, %d outputs, said to be read %d times, %v", seed, len(metas), len(outs), read, err)
			}
		}
		checkMerge(t, seed, in, m, metas, outs)
	}
}

func checkMerge(t *testing.T, seed uint64, in *input, m *Merge, metas []base.TableMeta, outs []*listing) {
	t.Helper()
	var rows []iterator.Entry
	var tombs []tombstone.Tombstone
	for i, o := range outs {
		if i > 0 && !metas[i-1].EndsBefore(metas[i].Smallest) {
			t.Fatalf("seed %d: table %d ends at %q, the next begins at %q", seed, i-1, metas[i-1].Largest, metas[i].Smallest)
		}
		rows, tombs = append(rows, o.rows...), append(tombs, o.tombs...)
	}
	if !slices.IsSortedFunc(rows, func(a, b iterator.Entry) int {
		return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(b.Seq, a.Seq))
	}) {
		t.Fatalf("seed %d: rows are out of order", seed)
	}
	for _, s := range append(slices.Clone(m.Snapshots), in.n) {
		for k := range 20 {
			want, known := read(in.rows, in.tombs, keyName(k), s)
			got, still := read(rows, tombs, keyName(k), s)
			if got != want || !m.Bottom && still != known {
				t.Fatalf("seed %d: key %d at %d is %q (known %v), was %q (%v)", seed, k, s, got, still, want, known)
			}
		}
	}
	for i, e := range rows {
		if last := i+1 == len(rows) || !bytes.Equal(e.Key, rows[i+1].Key); m.Bottom && last && e.Kind == base.KindDelete {
			t.Fatalf("seed %d: at the bottom a delete of %q, %d, that hides nothing", seed, e.Key, e.Seq)
		}
	}
	if m.Bottom && len(m.Snapshots) == 0 {
		for _, e := range rows {
			if e.Kind == base.KindDelete || e.Seq != 0 {
				t.Fatalf("seed %d: %q kind %v sequence %d is left at the bottom", seed, e.Key, e.Kind, e.Seq)
			}
		}
		if len(tombs) > 0 {
			t.Fatalf("seed %d: range tombstones are left at the bottom", seed)
		}
	}
}

// TestMergeErrors: what fails is returned, and the unfinished table is abandoned.
func TestMergeErrors(t *testing.T) {
	boom := errors.New("boom")
	var rows []iterator.Entry
	for i := range 3 * checkRows {
		rows = append(rows, iterator.Entry{Key: fmt.Appendf(nil, "%06d", i), Seq: 1, Kind: base.KindPut})
	}
	for name, set := range map[string]func(m *Merge, out *listing){
		"create": func(m *Merge, _ *listing) { m.Create = func() (Output, error) { return nil, boom } },
		"add":    func(_ *Merge, out *listing) { out.fail = boom },
		"check":  func(m *Merge, _ *listing) { m.Check = func() error { return boom } },
		"write":  func(_ *Merge, out *listing) { out.unwritten = boom },
	} {
		out := &listing{}
		m := &Merge{Rows: iterator.NewSliceIter(rows), TargetBytes: 1 << 30, Create: func() (Output, error) { return out, nil }}
		m.Read = func() { t.Errorf("%s: said to be read", name) }
		set(m, out)
		if _, err := m.Run(); !errors.Is(err, boom) {
			t.Errorf("%s: error is %v", name, err)
		}
		if name != "create" && !out.abandoned {
			t.Errorf("%s: the table is not abandoned", name)
		}
	}
}

// A version is kept for those only who read before the first one that hides it.
func TestLeftoversSayWhoSees(t *testing.T) {
	m := &Merge{
		Rows: iterator.NewSliceIter([]iterator.Entry{
			{Key: []byte("k"), Seq: 5, Kind: base.KindPut, Value: []byte("abc")}, {Key: []byte("k"), Seq: 1, Kind: base.KindPut, Value: []byte("d")},
		}),
		Tombstones: tombstone.Build([]tombstone.Tombstone{{Low: []byte("a"), High: []byte("z"), Seq: 9}}),
		Snapshots:  tombstone.Stripes{2, 6, 7, 12}, Bottom: true, TargetBytes: 1000,
		Create: func() (Output, error) { return &listing{}, nil },
	}
	if _, err := m.Run(); err != nil {
		t.Fatal(err)
	}
	if want := []Kept{{6, 7, 4}, {2, 2, 2}}; !slices.Equal(m.Leftovers()[0].Kept, want) {
		t.Errorf("%v, want %v", m.Leftovers()[0].Kept, want)
	}
}

// A Leftover never says of versions that fewer see them than do.
func TestLeftoversOfManySnapshots(t *testing.T) {
	var l Leftover
	total := int64(0)
	for i := range uint64(3 * mostKept) {
		for range 2 {
			l.Keep(Kept{10 * i, 10*i + 5, int64(i)})
			total += int64(i)
		}
	}
	none := Inputs{Readers: tombstone.Stripes{1e6}}
	if got := l.garbage(&none); len(l.Kept) != mostKept || got != total {
		t.Errorf("%d bytes in %d, want %d in %d", got, len(l.Kept), total, mostKept)
	}
	for i := range uint64(3 * mostKept) {
		one := Inputs{Readers: tombstone.Stripes{10*i + 3, 1e6}}
		if got := l.garbage(&one); i > 0 && got > total-2*int64(i) {
			t.Errorf("beside who sees %d bytes of %d: %d are garbage", 2*i, total, got)
		}
	}
}
