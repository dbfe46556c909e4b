package main

import (
	"encoding/json"
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
		checkPrintable(t, strings.ReplaceAll(printable(string(b)), "\n", ""))
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

func FuzzJSON(f *testing.F) {
	f.Add([]byte("k\xff"), []byte("\u009b<&>\u2028\U000e0001\x00"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var text strings.Builder
		o := newOutput(&text, false)
		var in, out record
		in.Key, in.KeyBase64 = jsonBytes(key)
		in.Value, in.ValueBase64 = jsonBytes(value)
		if err := o.document(&in); err != nil || o.flush() != nil {
			t.Fatal(err)
		}
		checkPrintable(t, strings.TrimSuffix(text.String(), "\n"))
		if err := json.Unmarshal([]byte(text.String()), &out); err != nil {
			t.Fatal(err)
		}
		if got := bytesOf(out.Key, out.KeyBase64); got != string(key) {
			t.Errorf("key %q, want %q", got, key)
		}
		if got := bytesOf(out.Value, out.ValueBase64); got != string(value) {
			t.Errorf("value %q, want %q", got, value)
		}
	})
}

func bytesOf(text *string, binary []byte) string {
	if text != nil {
		return *text
	}
	return string(binary)
}
