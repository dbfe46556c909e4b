package report

import (
	"io"
	"strings"
	"unicode"
)

// Printable replaces what could steer a terminal by "?": control characters, but new lines,
// and bytes that are no text. A saved run is anybody's file, and engines say what they like.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r), r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, text)
}

// printable passes on what is written to it, so replaced. Each write is whole characters.
type printable struct{ w io.Writer }

func (p printable) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, Printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
