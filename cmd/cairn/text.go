package main

import (
	"encoding/hex"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// appendEscaped appends b so that it is printable and unescape gives it back:
// \\ \t \n \r, and \xNN for each byte that is not part of a printable character.
func appendEscaped(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '\\':
			dst = append(dst, `\\`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range b[:n] {
				dst = append(dst, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
			}
		default:
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}

var errEscape = errors.New(`unknown escape: there are \\ \t \n \r and \xNN`)

// unescape is the inverse of appendEscaped. Bytes other than a backslash stand
// for themselves.
func unescape(s string) ([]byte, error) {
	var b []byte
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			return append(b, s...), nil
		}
		b = append(b, s[:at]...)
		c, n, err := unescapeOne(s[at:])
		if err != nil {
			return nil, err
		}
		b, s = append(b, c), s[at+n:]
	}
}

// unescapeOne returns the byte that the escape at the beginning of s stands for,
// and the escape's length.
func unescapeOne(s string) (c byte, n int, err error) {
	if len(s) < 2 {
		return 0, 0, errEscape
	}
	switch s[1] {
	case '\\':
		return '\\', 2, nil
	case 't':
		return '\t', 2, nil
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 'x':
		if b, err := hex.DecodeString(s[2:min(len(s), 4)]); err == nil && len(b) == 1 {
			return b[0], 4, nil
		}
	}
	return 0, 0, errEscape
}

func parseHex(s string) ([]byte, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return nil, errors.New("not hexadecimal: write two digits, 0-9 or a-f, for each byte")
	}
	return b, nil
}

// printable makes a message safe for a terminal, and one line: paths and what was found in
// files may hold anything.
func printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			b.Write(appendEscaped(nil, []byte(s[i:i+n])))
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
