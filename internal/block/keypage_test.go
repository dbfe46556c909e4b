package block

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/cairndb/cairn/internal/base"
)

type row struct {
	key  string
	seq  uint64
	kind base.Kind
	val  int
}

func build(rows []row) *KeyBuilder {
	b := new(KeyBuilder)
	for _, r := range rows {
		b.Add([]byte(r.key), r.seq, r.kind, r.val)
	}
	return b
}

func expand(t testing.TB, b *KeyBuilder) Keys {
	t.Helper()
	stored := b.Encode(nil)
	if bound := b.FormBound(0); b.FormBytes() > bound {
		t.Fatalf("form of %d bytes is over its bound %d", b.FormBytes(), bound)
	}
	form := bytes.Repeat([]byte{0xEE}, b.FormBytes())
	if err := Expand(form, stored); err != nil {
		t.Fatal(err)
	}
	return View(form)
}

func checkRows(t *testing.T, k Keys, rows []row) {
	t.Helper()
	if k.Rows() != len(rows) {
		t.Fatalf("%d rows, want %d", k.Rows(), len(rows))
	}
	end := 0
	for i, r := range rows {
		off, n := k.Value(i)
		if string(k.Key(i)) != r.key || k.Seq(i) != r.seq || k.Kind(i) != r.kind || off != end || n != r.val {
			t.Fatalf("row %d is %q %d %v %d+%d, want %v at %d", i, k.Key(i), k.Seq(i), k.Kind(i), off, n, r, end)
		}
		end += r.val
	}
	if k.ValueBytes() != end {
		t.Fatalf("%d value bytes, want %d", k.ValueBytes(), end)
	}
}

func checkSearch(t *testing.T, k Keys, rows []row, probe string) {
	t.Helper()
	want := sort.Search(len(rows), func(i int) bool { return rows[i].key >= probe })
	if got := k.SearchGE([]byte(probe)); got != want {
		t.Fatalf("SearchGE(%q) = %d, want %d", probe, got, want)
	}
}

func TestKeyPageGolden(t *testing.T) {
	rows := []row{{"app", 9, base.KindPut, 3}, {"app", 4, base.KindDelete, 0}, {"apple", 5, base.KindPut, 3}}
	want := "03" + "0b" + "03" + "617070" + // rows, key bytes, prefix
		"0104" + "050001" + // sequences from 4
		"0100" + "010001" + // kinds
		"0100" + "030003" + // value lengths
		"0100" + "000002" + // key lengths without the prefix
		"0000" + "6c65" // shared, suffixes
	if got := hex.EncodeToString(build(rows).Encode(nil)); got != want {
		t.Fatalf("key page is\n%s, want\n%s", got, want)
	}
	checkRows(t, expand(t, build(rows)), rows)
}

func randomRows(r *rand.Rand) []row {
	n, rows := 1+r.IntN(200), []row(nil)
	alphabet, maxLen := 1+r.IntN(256), 1+r.IntN(20)
	prefix, versions := string(noise(r.IntN(30))), r.IntN(2) == 0
	seqBase, seqRange := uint64(r.IntN(1<<20)), uint64(1)<<r.IntN(50)
	valRange, fixedLen, kinds := r.IntN(300), r.IntN(2) == 0, r.IntN(2) == 0
	for range n {
		suffix := make([]byte, maxLen)
		for i := range suffix {
			suffix[i] = byte(r.IntN(alphabet))
		}
		if !fixedLen {
			suffix = suffix[:r.IntN(maxLen+1)]
		}
		w := row{key: prefix + string(suffix), seq: seqBase + r.Uint64N(seqRange), kind: base.KindPut, val: valRange}
		if kinds && r.IntN(3) == 0 {
			w.kind, w.val = base.KindDelete, 0
		}
		if valRange > 0 && valRange%2 == 0 {
			w.val = r.IntN(valRange)
		}
		rows = append(rows, w)
	}
	return inOrder(rows, versions)
}

func inOrder(rows []row, versions bool) []row {
	slices.SortFunc(rows, func(a, b row) int {
		if a.key != b.key {
			return bytes.Compare([]byte(a.key), []byte(b.key))
		}
		return -1 + 2*btoi(a.seq < b.seq)
	})
	return slices.CompactFunc(rows, func(a, b row) bool { return a.key == b.key && (!versions || a.seq == b.seq) })
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestKeyPageRandomRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		rows := randomRows(r)
		k := expand(t, build(rows))
		checkRows(t, k, rows)
		for _, w := range rows {
			for _, probe := range []string{w.key, w.key + "\x00", w.key[:len(w.key)/2], w.key + "\xff", string(noise(r.IntN(12)))} {
				checkSearch(t, k, rows, probe)
			}
		}
	}
}

func TestKeyPageShapes(t *testing.T) {
	long := string(bytes.Repeat([]byte("k"), base.MaxKeyBytes))
	var counters, versions, ties []row
	for i := range 5000 {
		counters = append(counters, row{fmt.Sprintf("counter%09d", i), uint64(i) + 1, base.KindPut, 1})
		versions = append(versions, row{"same", uint64(9000 - i), base.KindPut, i % 3})
		ties = append(ties, row{fmt.Sprintf("%08d%04d", i/1000, i%1000), 1, base.KindPut, 0})
	}
	for name, rows := range map[string][]row{
		"one empty key":    {{"", 0, base.KindPut, 0}},
		"one jumbo value":  {{"k", 1, base.KindPut, base.MaxValueBytes}},
		"longest keys":     {{long[:len(long)-1], 3, base.KindPut, 1}, {long, 2, base.KindDelete, 0}},
		"only deletes":     {{"a", 3, base.KindDelete, 0}, {"b", 3, base.KindDelete, 0}},
		"prefixes":         {{"", 1, base.KindPut, 1}, {"a", 1, base.KindPut, 1}, {"a\x00", 1, base.KindPut, 1}, {"a\x00\x00", 1, base.KindPut, 1}},
		"zeros past 8":     {{"p\x00", 1, base.KindPut, 1}, {"p\x00\x00\x00\x00\x00\x00\x00\x00\x00", 1, base.KindPut, 1}},
		"extreme seqs":     {{"a", base.MaxSeq, base.KindPut, 1}, {"a", 0, base.KindPut, 1}, {"b", 1 << 33, base.KindPut, 1}},
		"counters":         counters,
		"versions":         versions,
		"equal norms":      ties,
		"page-sized value": {{"a", 1, base.KindPut, MaxPageBytes}, {"b", 1, base.KindPut, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			k := expand(t, build(rows))
			checkRows(t, k, rows)
			for i := 0; i < len(rows); i += 1 + len(rows)/50 {
				checkSearch(t, k, rows, rows[i].key)
				checkSearch(t, k, rows, rows[i].key+"\x00")
			}
			checkSearch(t, k, rows, "")
			checkSearch(t, k, rows, "zzz")
		})
	}
}

func TestKeyPageMaxRows(t *testing.T) {
	b := new(KeyBuilder)
	for i := range MaxRows {
		b.Add([]byte{byte(i >> 8), byte(i)}, 5, base.KindPut, 2)
	}
	k := expand(t, b)
	if k.Rows() != MaxRows || k.SearchGE([]byte{0xFF, 0xFE}) != MaxRows-1 {
		t.Fatal("rows lost")
	}
}

func TestExpandRefusesDisorder(t *testing.T) {
	for name, rows := range map[string][]row{
		"descending keys": {{"b", 1, base.KindPut, 0}, {"a", 1, base.KindPut, 0}},
		"same row twice":  {{"a", 1, base.KindPut, 0}, {"a", 1, base.KindPut, 0}},
		"older first":     {{"a", 1, base.KindPut, 0}, {"a", 2, base.KindPut, 0}},
		"older, wide":     {{"a", 1, base.KindPut, 0}, {"a", 1 << 40, base.KindPut, 0}},
		"longer first":    {{"ab", 1, base.KindPut, 0}, {"a", 1, base.KindPut, 0}},
		"range delete":    {{"a", 1, base.KindRangeDelete, 0}},
		"great sequence":  {{"a", base.SeqPrivate, base.KindPut, 0}},
		"great value":     {{"a", 1, base.KindPut, base.MaxValueBytes + 1}},
		"great heap":      {{"a", 1, base.KindPut, MaxPageBytes}, {"b", 1, base.KindPut, 1}},
	} {
		b := build(rows)
		stored := b.Encode(nil)
		if err := Expand(make([]byte, b.FormBytes()), stored); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestExpandRefusesWrongSizeAndTruncation(t *testing.T) {
	b := build([]row{{"app", 9, base.KindPut, 3}, {"app", 4, base.KindDelete, 0}, {"apple", 5, base.KindPut, 3}})
	stored := b.Encode(nil)
	for _, n := range []int{0, b.FormBytes() - 64, b.FormBytes() - 1, b.FormBytes() + 1, b.FormBytes() + 64} {
		if Expand(make([]byte, n), stored) == nil {
			t.Errorf("form of %d bytes accepted, needs %d", n, b.FormBytes())
		}
	}
	for n := range stored {
		if Expand(make([]byte, b.FormBytes()), stored[:n]) == nil {
			t.Errorf("stored page cut to %d bytes accepted", n)
		}
	}
	if Expand(make([]byte, b.FormBytes()), append(stored, 0)) == nil {
		t.Error("trailing byte accepted")
	}
}

func TestColumnRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	columns := [][]uint64{{0}, {math.MaxUint64}, {0, math.MaxUint64}, {7, 7, 7}, {1, 2, 3, 4}, {9, 8, 7}, {math.MaxUint64, 0, 5}}
	for range 200 {
		v := make([]uint64, 1+r.IntN(3*chunk))
		for i := range v {
			v[i] = r.Uint64() >> r.IntN(64)
		}
		columns = append(columns, v)
	}
	for _, v := range columns {
		b, spread := new(columnWriter).append(nil, v)
		if spread != slices.Max(v)-slices.Min(v) {
			t.Fatalf("%v: spread %d", v, spread)
		}
		b = append(b, 0xCC)
		c, rest, ok := cutColumn(b, len(v))
		if !ok || len(rest) != 1 {
			t.Fatalf("%v: does not parse", v)
		}
		var got []uint64
		sum := uint64(0)
		room, reading := make([]uint64, chunk), c
		for from := 0; from < len(v); from += chunk {
			got = append(got, reading.next(room, from, len(v))...)
		}
		if !slices.Equal(got, v) {
			t.Fatalf("%v reads as %v", v, got)
		}
		for _, x := range v {
			sum += x
		}
		if low, high, total := c.survey(len(v)); low != slices.Min(v) || high != slices.Max(v) || total != sum {
			t.Fatalf("%v: from %d to %d, sum %d", v, low, high, total)
		}
		for n := range len(b) - 1 {
			if _, _, ok := cutColumn(b[:n], len(v)); ok {
				t.Fatalf("%v: parses when cut to %d bytes", v, n)
			}
		}
	}
}

func TestCommonPrefix(t *testing.T) {
	for n := range 40 {
		a := bytes.Repeat([]byte("x"), n)
		for at := range n {
			b := bytes.Clone(a)
			b[at] = 'y'
			if CommonPrefix(a, b) != at || CommonPrefix(a, a[:at]) != at {
				t.Fatalf("length %d, difference at %d", n, at)
			}
		}
	}
}

func FuzzKeyPage(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(build(randomRows(rand.New(rand.NewPCG(seed, 1)))).Encode(nil))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		n, err := formBytes(stored)
		if err != nil {
			return
		}
		form := make([]byte, n)
		if Expand(form, stored) != nil {
			return
		}
		k := View(form)
		rows, end := []row(nil), 0
		for i := range k.Rows() {
			off, n := k.Value(i)
			if off != end {
				t.Fatalf("value %d at %d, want %d", i, off, end)
			}
			end += n
			rows = append(rows, row{string(k.Key(i)), k.Seq(i), k.Kind(i), n})
		}
		for i := 0; i < len(rows); i += 1 + len(rows)/20 {
			checkSearch(t, k, rows, rows[i].key)
		}
		checkRows(t, expand(t, build(rows)), rows)
	})
}

func BenchmarkExpand(b *testing.B) {
	const rows = 2000
	for name, key := range map[string]func(i int) []byte{
		"counters": func(i int) []byte { return fmt.Appendf(nil, "counter%09d", i) },
		"short": func(i int) []byte {
			return binary.BigEndian.AppendUint64([]byte{1}, uint64(i)<<53+uint64(i)*0x9e3779b97f4a7c15>>11)
		},
		"lengths": func(i int) []byte { return fmt.Appendf(nil, "%06d%s", i*37, "a name"[:i%6]) },
		"prefix":  func(i int) []byte { return fmt.Appendf(nil, "example.org/orders/2024/%08d", i) },
		"long":    func(i int) []byte { return fmt.Appendf(nil, "users/by-mail/%06d@example.org/%04d", i*37, i%10000) },
	} {
		for _, bottom := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/bottom=%v", name, bottom), func(b *testing.B) {
				kb := new(KeyBuilder)
				for i := range rows {
					seq := uint64(i * 7 % 1000)
					if bottom {
						seq = 0
					}
					kb.Add(key(i), seq, base.KindPut, 8)
				}
				stored, form := kb.Encode(nil), make([]byte, kb.FormBytes())
				for b.Loop() {
					if err := Expand(form, stored); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			})
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	keys := make([][]byte, 4000)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "counter%09d", i)
	}
	kb, out := new(KeyBuilder), []byte(nil)
	for b.Loop() {
		kb.Reset()
		for i, k := range keys {
			kb.Add(k, uint64(i), base.KindPut, 1)
		}
		out = kb.Encode(out[:0])
		kb.FormBytes()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/4000, "ns/row")
}

// TestExpandLimits: a key that is too long is refused, however few bytes it has behind a long prefix.
func TestExpandLimits(t *testing.T) {
	const rest = 12
	for _, n := range []int{base.MaxKeyBytes, base.MaxKeyBytes + 1} {
		prefix := bytes.Repeat([]byte{'p'}, n-rest)
		var kb KeyBuilder
		kb.Add(fmt.Appendf(bytes.Clone(prefix), "%0*d", rest, 0), 0, base.KindPut, 0) // the others are shorter
		for i := range 12 {
			kb.Add(fmt.Appendf(bytes.Clone(prefix), "%d", 100+i*70), 0, base.KindPut, 0)
		}
		stored := kb.Encode(nil)
		err := Expand(make([]byte, kb.FormBytes()), stored)
		if (err == nil) != (n == base.MaxKeyBytes) {
			t.Errorf("keys of up to %d bytes: %v", n, err)
		}
	}
}

// formBytes returns the size of the form that Expand makes of a stored key page.
func formBytes(stored []byte) (int, error) {
	s, err := parseKeys(stored)
	if err != nil {
		return 0, err
	}
	if n := s.layout().size; n <= MaxPageBytes {
		return n, nil
	}
	return 0, errLimits
}
