package main

import (
	"bytes"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for plain, escaped := range map[string]string{
		"":                  "",
		"plain text":        "plain text",
		"\u00e9\u20ac":      "\u00e9\u20ac",
		`\`:                 `\\`,
		"\t\n\r":            `\t\n\r`,
		"\x00\x1b\x7f":      `\x00\x1b\x7f`,
		"\u009b31m":         `\xc2\x9b31m`, // a control sequence in one character
		"\u202egpj.exe":     `\xe2\x80\xaegpj.exe`,
		"\xff\xc3":          `\xff\xc3`,
		"\ufffd":            "\ufffd",
		"\u00a0\u2028":      `\xc2\xa0\xe2\x80\xa8`,
		"\xed\xa0\x80":      `\xed\xa0\x80`,
		`\x41 is no escape`: `\\x41 is no escape`,
	} {
		if got := string(appendEscaped(nil, []byte(plain))); got != escaped {
			t.Errorf("%q: %s, want %s", plain, got, escaped)
		}
		if got, err := unescape(escaped); err != nil || string(got) != plain {
			t.Errorf("%s: %q, %v", escaped, got, err)
		}
	}
}

func TestUnescapeMalformed(t *testing.T) {
	for _, s := range []string{`\`, `a\`, `\q`, `\x`, `\x1`, `\xg0`, `\x0g`, `\X00`, `\0`} {
		if b, err := unescape(s); err == nil {
			t.Errorf("%s: %q", s, b)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add([]byte("a\\\x1b\xff\u202e"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := string(appendEscaped(nil, b))
		checkPrintable(t, s)
		back, err := unescape(s)
		if err != nil || string(back) != string(b) {
			t.Errorf("%q: %s: %q, %v", b, s, back, err)
		}
		for limit := 5; limit < len(b); limit++ { // pieces make the same text
			n := cut(b, limit)
			if got := string(appendEscaped(appendEscaped(nil, b[:n]), b[n:])); n <= 0 || got != s {
				t.Fatalf("%q cut at %d: %s", b, n, got)
			}
		}
		checkPrintable(t, printable(string(b)))
	})
}

func checkPrintable(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%q is not UTF-8", s)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			t.Errorf("%q is not printable", s)
			return
		}
	}
}

// pair is the JSON of a key and its value.
type pair struct {
	record
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte("k\xff"), []byte("\u009b<&>\u2028\U000e0001\x00"))
	for _, s := range []string{"", "\x00\x1f\x7f\b\f\n\r\t\"\\/", "<a href='&amp;'>", "\u2028\u2029\ufffd\ufeff\u00a0", "\xff", "\xed\xa0\x80", "\U0001f600\U0010ffff\ue000"} {
		f.Add([]byte(s), []byte(s))
		for _, fill := range []int{pieceBytes - 2, pieceBytes - 1, pieceBytes, 2*pieceBytes - 1} { // across pieces
			f.Add([]byte("k"), []byte(strings.Repeat("v", fill)+s+"w"))
			f.Add([]byte(s+"k"), []byte(strings.Repeat(s, 1+2*pieceBytes/(len(s)+1))))
		}
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var text, whole strings.Builder
		o := newOutput(&text, false)
		var in, out pair
		in.Key, in.KeyBase64 = jsonBytes(key)
		in.Value, in.ValueBase64 = jsonBytes(value)
		if err := o.pair(key, value, true); err != nil || o.flush() != nil {
			t.Fatal(err)
		}
		checkPrintable(t, strings.TrimSuffix(text.String(), "\n"))
		o = newOutput(&whole, false)
		if err := o.document(&in); err != nil || o.flush() != nil || whole.String() != text.String() {
			t.Fatalf("%v, %q, in pieces %q", err, short(whole.String()), short(text.String()))
		}
		if err := json.Unmarshal([]byte(text.String()), &out); err != nil {
			t.Fatal(err)
		}
		if got := bytesOf(out.Key, out.KeyBase64); got != string(key) {
			t.Errorf("key %q, want %q", short(got), short(string(key)))
		}
		if got := bytesOf(out.Value, out.ValueBase64); got != string(value) {
			t.Errorf("value %q, want %q", short(got), short(string(value)))
		}
	})
}

// A large value is printed piece by piece: as JSON it took up to thirty times its size in memory.
func TestJSONOfALargeValueTakesLittleMemory(t *testing.T) {
	const size = 4 << 20
	for _, s := range []string{"a", "\x00", "\x7f", "\u0080", "\u20ac", "\U000e0001", "\xff"} {
		value := bytes.Repeat([]byte(s), size/len(s))
		a := &app{out: newOutput(io.Discard, false), json: true}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := a.printValue([]byte("k"), value)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > 2*size {
			t.Errorf("%q: %v, allocated %.1f times the value", s, err, float64(took)/size)
		}
	}
}

func bytesOf(text *string, binary []byte) string {
	if text != nil {
		return *text
	}
	return string(binary)
}
