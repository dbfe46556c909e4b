package data

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const lines = `{"id":"b","n":1}
{"id":"a","text":"longer than the others, by a good deal"}

{"id":7}
`

func TestRecordsKeepTheirBytesAndSizes(t *testing.T) {
	r, err := File{Path: written(t, "x.jsonl", "\xef\xbb\xbf"+lines)}.Read()
	if err != nil || len(r.Values) != 3 || r.Keys != nil || string(r.Values[0]) != `{"id":"b","n":1}` || string(r.Values[2]) != `{"id":7}` {
		t.Fatalf("%q %v", r.Values, err)
	}
	s := r.Source(1)
	for id := range uint64(6) {
		if !bytes.Equal(s.Value(id, 0, 999), r.Values[id%3]) {
			t.Errorf("id %d is not record %d", id, id%3)
		}
		if bytes.Equal(s.Value(id, 0, 0), s.Value(id, 1, 0)) {
			t.Errorf("id %d: two versions are the same", id)
		}
	}
	if c := s.Compressibility(r.MeanBytes()); c.Values <= 0 || c.Snappy4K <= 0 {
		t.Errorf("compressibility %+v", c)
	}
}

func TestOwnKeysAreSortedAndFound(t *testing.T) {
	for _, f := range []File{
		{Path: written(t, "x.jsonl", lines), Key: "id"},
		{Path: written(t, "x.csv", "n,id\n1,b\r\n\"two\nlines\",a\n3,7\n"), Key: "id"},
	} {
		r, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		keys, own := r.KeySet()
		if !own || string(bytes.Join(r.Keys, []byte(" "))) != "7 a b" || keys.Bytes(2) != 2 {
			t.Errorf("keys %q", r.Keys)
		}
		if id, ok := keys.ID([]byte("b")); !ok || id != 2 || string(keys.At(2)) != "b" {
			t.Errorf("b is number %d, %v", id, ok)
		}
		if _, ok := keys.ID([]byte("c")); ok {
			t.Error("a key that is not there is found")
		}
	}
}

func TestCSVRowsStandAsInTheFile(t *testing.T) {
	r, err := File{Path: written(t, "x.csv", "a,b\r\n1,\"x, y\"\r\n\"two\nlines\",2\r\n")}.Read()
	if err != nil || len(r.Values) != 2 || string(r.Values[0]) != `1,"x, y"` || string(r.Values[1]) != "\"two\nlines\",2" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestMalformedRecordsAreNamedByLine(t *testing.T) {
	long := strings.Repeat("k", MaxKeyBytes+1)
	for _, c := range []struct {
		name, text, key string
		bad             []int
		good            int
	}{
		{"x.jsonl", "{\"id\":1}\n{\"id\":\n\n[1,2\nnull\n", "", []int{2, 4}, 2},
		{"x.jsonl", "{\"id\":1}\n{\"no\":1}\n[1]\n{\"id\":true}\n{\"id\":\"\"}\n{\"id\":1}\n{\"id\":\"" + long + "\"}\n", "id", []int{2, 3, 4, 5, 6, 7}, 1},
		{"x.csv", "id,n\na,1\nb\nc,2,3\nd,\"x\"y\ne,5\n", "id", []int{3, 4, 5}, 2},
		{"x.csv", "id,n\na,1\na,2\n", "id", []int{3}, 1},
	} {
		f := File{Path: written(t, c.name, c.text), Key: c.key}
		_, err := f.Read()
		if !errors.Is(err, ErrBadRecords) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		f.SkipBad = true
		r, err := f.Read()
		if err != nil || len(r.Values) != c.good || len(r.Bad) != len(c.bad) {
			t.Errorf("%q skipped: %+v, %v", c.text, r, err)
			continue
		}
		for i, line := range c.bad {
			if r.Bad[i].Line != line || r.Bad[i].Why == "" {
				t.Errorf("%q: complaint %d is %+v, want line %d", c.text, i, r.Bad[i], line)
			}
		}
	}
}

func TestErrorListsLinesAndSaysHowManyMore(t *testing.T) {
	_, err := File{Path: written(t, "x.jsonl", strings.Repeat("{\n", 25))}.Read()
	if err == nil || !strings.Contains(err.Error(), "25 malformed records") || !strings.Contains(err.Error(), "line 20:") ||
		strings.Contains(err.Error(), "line 21:") || !strings.Contains(err.Error(), "and 5 more") {
		t.Errorf("%v", err)
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	for _, f := range []File{
		{Path: filepath.Join(t.TempDir(), "missing.jsonl")},
		{Path: written(t, "x.txt", "{}\n")},
		{Path: written(t, "x.jsonl", "\n\n")},
		{Path: written(t, "x.csv", "")},
		{Path: written(t, "x.csv", "a,b\n1,2\n"), Key: "c"},
		{Path: written(t, "x.jsonl", "{\n"), SkipBad: true},
	} {
		if r, err := f.Read(); err == nil {
			t.Errorf("%+v gives %+v", f, r)
		}
	}
}

func TestSizedKeys(t *testing.T) {
	for _, size := range []int{4, 16, 24, 64} {
		keys := NewSizedKeys(1000, size)
		for _, i := range []int{0, 9, 10, 999} {
			if id, ok := keys.ID(keys.At(i)); !ok || id != uint64(i) || len(keys.At(i)) != size {
				t.Errorf("size %d: key %d is %q", size, i, keys.At(i))
			}
		}
	}
	if LeastKeyBytes(1000) != 3 || LeastKeyBytes(1001) != 4 || LeastKeyBytes(1) != 1 {
		t.Error("LeastKeyBytes")
	}
	if _, ok := NewSizedKeys(10, 30).ID(bytes.Repeat([]byte("9"), 30)); ok {
		t.Error("a number beyond 64 bits is taken")
	}
}
