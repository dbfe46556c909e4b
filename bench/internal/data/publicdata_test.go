package data

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// words are of several scripts, with everything JSON and CSV must escape.
var words = []string{"wörld", "数据集", "данные", "🦉🏔", "naïve", `say "hi"`, `back\slash`, "a,b;c", "two\nlines", "tab\there", "\u2028", "plain", "e\u0301"}

func prose(rng *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

// sizeOf a record's text: most are small, some are 300 KB.
func sizeOf(rng *rand.Rand, i int) int {
	if i%97 == 0 {
		return 300_000
	}
	return 1 << rng.IntN(12)
}

// publicLines makes records in the style of public data sets: nested, of several
// scripts, of 20 B to 300 KB.
func publicLines(n int) (lines []string, keys []string) {
	rng := rand.New(rand.NewPCG(3, 5))
	for i := range n {
		key := fmt.Sprintf("%s/%05d", words[i%2], n-i)
		record := map[string]any{"id": key}
		if i%7 > 0 {
			record["body"] = prose(rng, sizeOf(rng, i))
			record["user"] = map[string]any{"name": prose(rng, 5), "tags": []any{i, nil, true, 1.5e-7, []any{}}, "geo": map[string]any{"id": "not the key"}}
		}
		line, err := json.Marshal(record)
		if err != nil {
			panic(err)
		}
		lines, keys = append(lines, string(line)), append(keys, key)
	}
	return lines, keys
}

func TestLinesInTheStyleOfPublicDataSets(t *testing.T) {
	lines, keys := publicLines(300)
	shortest, longest := len(lines[0]), 0
	for _, l := range lines {
		shortest, longest = min(shortest, len(l)), max(longest, len(l))
	}
	if shortest > 25 || longest < 300_000 {
		t.Fatalf("records of %d to %d B", shortest, longest)
	}
	for name, content := range map[string]string{
		"newlines":                  strings.Join(lines, "\n") + "\n",
		"no newline at the end":     strings.Join(lines, "\n"),
		"CRLF and blank lines":      strings.Join(lines, "\r\n") + "\r\n\r\n  \n\n",
		"a mark, blanks in between": "\xef\xbb\xbf" + strings.Join(lines, "\n\n"),
	} {
		r, err := File{Path: written(t, "x.ndjson", content)}.Read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, v := range r.Values {
			if string(v) != lines[i] {
				t.Fatalf("%s: record %d is not as it stands: %.60q", name, i, v)
			}
		}
		if len(r.Values) != len(lines) {
			t.Errorf("%s: %d of %d records", name, len(r.Values), len(lines))
		}
		r, err = File{Path: written(t, "x.jsonl", content), Key: "id"}.Read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkKeyed(t, name, r, keys, lines)
	}
}

// checkKeyed: the records are in the order of their keys, each with its own value.
func checkKeyed(t *testing.T, name string, r *Records, keys, values []string) {
	t.Helper()
	want := map[string]string{}
	for i, k := range keys {
		want[k] = values[i]
	}
	if len(r.Keys) != len(keys) || len(r.Values) != len(keys) || !slices.IsSortedFunc(r.Keys, bytes.Compare) {
		t.Fatalf("%s: %d keys and %d values of %d, or not in order", name, len(r.Keys), len(r.Values), len(keys))
	}
	for i, k := range r.Keys {
		if want[string(k)] != string(r.Values[i]) {
			t.Fatalf("%s: key %q has another's value %.60q", name, k, r.Values[i])
		}
	}
}

func TestRowsInTheStyleOfPublicDataSets(t *testing.T) {
	lines, keys := publicLines(200)
	for _, crlf := range []bool{false, true} {
		var file bytes.Buffer
		w := csv.NewWriter(&file)
		w.UseCRLF = crlf
		var rows []string
		write := func(fields ...string) {
			from := file.Len()
			if err := w.Write(fields); err != nil {
				t.Fatal(err)
			}
			w.Flush()
			rows = append(rows, strings.TrimRight(file.String()[from:], "\r\n"))
		}
		write("body", "id", "empty")
		for i, l := range lines {
			write(l+"\n"+words[i%len(words)], keys[i], "")
		}
		file.WriteString("\r\n\n")
		r, err := File{Path: written(t, "x.csv", file.String()), Key: "id"}.Read()
		if err != nil {
			t.Fatal(err)
		}
		checkKeyed(t, fmt.Sprintf("CRLF %v", crlf), r, keys, rows[1:])
	}
}

func TestEveryKindOfMalformedRecordIsNamedByLine(t *testing.T) {
	long := strings.Repeat("ü", MaxKeyBytes/2+1)
	jsonl := []struct{ line, why string }{
		{`{"id":"a","n":{"id":"deep"}}`, ""},
		{`{"id":"b","cut":{"of`, "no JSON: unexpected end"},
		{``, ""},
		{`"a bare value"`, "not an object"},
		{`{"n":{"id":"only deep"}}`, "no field id"},
		{`{"id":"\u0061"}`, `key "a" again; it was on line 1`},
		{`{"id":"` + long + `"}`, "a key of 512 bytes"},
		{`{"id":null}`, "neither a string nor a number"},
		{`{"id":"c"} {"id":"d"}`, "no JSON: invalid character"},
		{`{"id":"","x":1}`, "an empty key"},
		{`{"id":"e","x":"` + strings.Repeat("x", MaxValueBytes) + `"}`, "a record of 104"},
		{`{"id":-7}`, ""},
	}
	var lines, whys []string
	for _, c := range jsonl {
		lines, whys = append(lines, c.line), append(whys, c.why)
	}
	checkBad(t, File{Path: written(t, "x.jsonl", strings.Join(lines, "\r\n")), Key: "id"}, whys, 2)

	rows := "id,n\n" + // 1
		"a,\"two\nlines\"\n" + // 2, 3
		"b,1,2\n" + // 4
		"c\n" + // 5
		",empty\n" + // 6
		"a,again\n" + // 7
		long + ",1\n" + // 8
		"d,\"x\"y\n" + // 9
		"e,1\n" + // 10
		"f,\"never\nclosed\n" // 11 to 13
	checkBad(t, File{Path: written(t, "x.csv", rows), Key: "id"}, []string{"", "", "", "wrong number of fields", "wrong number of fields", "an empty key",
		`key "a" again; it was on line 2`, "a key of 512 bytes", `missing " in quoted-field`, "", `missing " in quoted-field; up to line 1`}, 2)
}

// checkBad reads a file that has a complaint on each line with a reason, and on no other.
func checkBad(t *testing.T, f File, whys []string, good int) {
	t.Helper()
	if _, err := f.Read(); !errors.Is(err, ErrBadRecords) {
		t.Fatalf("%v", err)
	}
	f.SkipBad = true
	r, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	bad := map[int]string{}
	for _, b := range r.Bad {
		bad[b.Line] = b.Why
	}
	for i, want := range whys {
		have, complained := bad[i+1]
		if complained != (want != "") || !strings.Contains(have, want) {
			t.Errorf("line %d: %q, want %q", i+1, have, want)
		}
		delete(bad, i+1)
	}
	if len(bad) > 0 || len(r.Values) != good {
		t.Errorf("%d records, want %d; complaints of other lines: %v", len(r.Values), good, bad)
	}
}
