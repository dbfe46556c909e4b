package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// record is the JSON of a key and its value. Of each pair of fields exactly one
// is there: the text if the bytes are UTF-8, else their base64.
type record struct {
	Key         *string `json:"key,omitempty"`
	KeyBase64   []byte  `json:"key_base64,omitempty"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// jsonBytes returns b as text if it is UTF-8, and else as bytes, which become base64.
func jsonBytes(b []byte) (text *string, binary []byte) {
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}

// document writes v as one line of JSON.
func (o *output) document(v any) error {
	o.scratch.Reset()
	enc := json.NewEncoder(&o.scratch)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode JSON: %w", err)
	}
	line := bytes.TrimSuffix(o.scratch.Bytes(), []byte("\n"))
	if i := unprintable(line); i < len(line) {
		line = printableJSON(nil, line)
	}
	if err := o.write(line); err != nil {
		return err
	}
	return o.endLine()
}

// done writes the document of something that was done: if it cannot be written that does not undo it.
func (o *output) done(v any) error {
	if err := o.flushAfter(o.document(v)); err != nil {
		return fmt.Errorf("what was asked for is done, and stays: %w", err)
	}
	return nil
}

// unprintable returns the index of the first character JSON allows in a string
// but a terminal might obey, len(b) if there is none.
func unprintable(b []byte) int {
	for i := 0; i < len(b); {
		if c := b[i]; c >= ' ' && c < 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if !unicode.IsPrint(r) {
			return i
		}
		i += n
	}
	return len(b)
}

// printableJSON appends the JSON document b with such characters written as \uXXXX,
// which is the same document: outside of strings there are none.
func printableJSON(dst, b []byte) []byte {
	for len(b) > 0 {
		i := unprintable(b)
		dst, b = append(dst, b[:i]...), b[i:]
		if len(b) == 0 {
			break
		}
		r, n := utf8.DecodeRune(b)
		for _, unit := range utf16Units(r) {
			dst = fmt.Appendf(dst, `\u%04x`, unit)
		}
		b = b[n:]
	}
	return dst
}

func utf16Units(r rune) []rune {
	if r < 0x10000 {
		return []rune{r}
	}
	r -= 0x10000
	return []rune{0xd800 + r>>10, 0xdc00 + r&0x3ff}
}
