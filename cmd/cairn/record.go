package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// record is the JSON of a key. Of the fields exactly one is there: the text if the
// bytes are UTF-8, else their base64.
type record struct {
	Key       *string `json:"key,omitempty"`
	KeyBase64 []byte  `json:"key_base64,omitempty"`
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

// pair writes the document of a key and, if it is wanted, its value, whose fields are as those
// of a record, piece by piece: a value may be large.
func (o *output) pair(key, value []byte, withValue bool) error {
	err := o.field(`{"key`, key)
	if err == nil && withValue {
		err = o.field(`,"value`, value)
	}
	if err == nil {
		err = o.write([]byte("}"))
	}
	if err != nil {
		return err
	}
	return o.endLine()
}

// field writes a field that begins as said: the rest of its name, and b.
func (o *output) field(begin string, b []byte) error {
	kind, content := `":"`, o.jsonText
	if !utf8.Valid(b) {
		kind, content = `_base64":"`, o.base64
	}
	err := o.write([]byte(begin + kind))
	if err == nil {
		err = content(b)
	}
	if err != nil {
		return err
	}
	return o.write([]byte(`"`))
}

func (o *output) jsonText(b []byte) error {
	for len(b) > 0 {
		n := cut(b, pieceBytes)
		o.piece = appendJSON(o.piece[:0], b[:n])
		if err := o.write(o.piece); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (o *output) base64(b []byte) error {
	enc := base64.NewEncoder(base64.StdEncoding, o.w)
	_, err := enc.Write(b)
	if err == nil {
		err = enc.Close()
	}
	return outcome(err)
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
		dst, b = appendUnits(dst, r), b[n:]
	}
	return dst
}

// appendUnits appends a character as \uXXXX, or as two of these.
func appendUnits(dst []byte, r rune) []byte {
	var units [2]uint16
	for _, u := range utf16.AppendRune(units[:0], r) {
		dst = append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	return dst
}

// appendJSON appends the UTF-8 text b as it stands in a string of a document.
func appendJSON(dst, b []byte) []byte {
	const short, letters = "\"\\\b\f\n\r\t", `"\bfnrt`
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if i := strings.IndexRune(short, r); i >= 0 {
			dst = append(dst, '\\', letters[i])
		} else if unicode.IsPrint(r) {
			dst = append(dst, b[:n]...)
		} else {
			dst = appendUnits(dst, r)
		}
		b = b[n:]
	}
	return dst
}
