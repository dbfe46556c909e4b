package data

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// readCSV takes each row as a value, as it stands in the file; the first row names
// the fields.
func readCSV(text []byte, field string, c *collector) error {
	text = skipMark(text)
	r := csv.NewReader(bytes.NewReader(text))
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		return fmt.Errorf("the header: %w", err)
	}
	column := -1
	if field != "" {
		if column = slices.Index(head, field); column < 0 {
			return fmt.Errorf("no field %q in the header %q", field, head)
		}
	}
	for {
		from := r.InputOffset()
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			c.complain(parse.StartLine, "%s", csvComplaint(parse))
			continue
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		value := bytes.Trim(text[from:r.InputOffset()], "\r\n")
		var key []byte
		if column >= 0 {
			key = []byte(row[column])
		}
		c.add(line, key, value[:len(value):len(value)])
	}
}

// csvComplaint names the last line too where a row goes on, as after a quote that is
// never closed: all of them are lost.
func csvComplaint(e *csv.ParseError) string {
	if e.Line > e.StartLine {
		return fmt.Sprintf("%v; up to line %d", e.Err, e.Line)
	}
	return e.Err.Error()
}
