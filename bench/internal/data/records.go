package data

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MaxFileBytes is the largest file of records: all of it is held in memory.
const MaxFileBytes = 1 << 30

// File names the user's records, which take the place of the pool.
type File struct {
	Path    string `json:"path"`               // .jsonl, .ndjson or .csv
	Key     string `json:"key,omitempty"`      // field that is the key; empty: generated keys
	SkipBad bool   `json:"skip_bad,omitempty"` // leave malformed records out in place of refusing the file
}

// BadRecord is a record that cannot be used.
type BadRecord struct {
	Line int // where it begins, from 1
	Why  string
}

// Records are what a file holds.
type Records struct {
	Values [][]byte
	Keys   [][]byte // sorted, one for each value; nil without File.Key
	Bad    []BadRecord
}

// ErrBadRecords is wrapped by the error that lists malformed records.
var ErrBadRecords = errors.New("malformed records")

// badShown is how many malformed records an error lists.
const badShown = 20

// Read reads the records. Malformed ones are an error that lists them with their
// line numbers, unless they are to be skipped: then they are in Records.Bad.
func (f File) Read() (*Records, error) {
	info, err := os.Stat(f.Path)
	if err != nil {
		return nil, err
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read into memory", f.Path, info.Size(), MaxFileBytes)
	}
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	c := &collector{keyed: f.Key != "", lines: map[string]int{}}
	switch ext := strings.ToLower(filepath.Ext(f.Path)); ext {
	case ".jsonl", ".ndjson":
		err = readJSONLines(text, f.Key, c)
	case ".csv":
		err = readCSV(text, f.Key, c)
	default:
		return nil, fmt.Errorf("%s: records are read from .jsonl, .ndjson and .csv, not %q", f.Path, ext)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return c.finish(f)
}

// collector takes records and complaints in the order of the file.
type collector struct {
	keyed   bool
	records []record
	bad     []BadRecord
	lines   map[string]int // of keys
}

type record struct{ key, value []byte }

func (c *collector) complain(line int, format string, args ...any) {
	c.bad = append(c.bad, BadRecord{line, fmt.Sprintf(format, args...)})
}

// add takes a record that its format has found well formed.
func (c *collector) add(line int, key, value []byte) {
	if len(value) > MaxValueBytes {
		c.complain(line, "a record of %d bytes; the most is %d", len(value), MaxValueBytes)
		return
	}
	if !c.keyed {
		c.records = append(c.records, record{value: value})
		return
	}
	switch before, twice := c.lines[string(key)]; {
	case len(key) == 0:
		c.complain(line, "an empty key")
	case len(key) > MaxKeyBytes:
		c.complain(line, "a key of %d bytes; the most every engine takes is %d", len(key), MaxKeyBytes)
	case twice:
		c.complain(line, "key %q again; it was on line %d", key, before)
	default:
		c.lines[string(key)] = line
		c.records = append(c.records, record{key, value})
	}
}

func (c *collector) finish(f File) (*Records, error) {
	if len(c.bad) > 0 && !f.SkipBad {
		return nil, listBad(f.Path, c.bad)
	}
	if len(c.records) == 0 {
		return nil, fmt.Errorf("%s: no record in it (%d malformed)", f.Path, len(c.bad))
	}
	r := &Records{Bad: c.bad}
	if c.keyed {
		slices.SortFunc(c.records, func(a, b record) int { return bytes.Compare(a.key, b.key) })
	}
	for _, rec := range c.records {
		r.Values = append(r.Values, rec.value)
		if c.keyed {
			r.Keys = append(r.Keys, rec.key)
		}
	}
	return r, nil
}

func listBad(path string, bad []BadRecord) error {
	var text strings.Builder
	for _, b := range bad[:min(len(bad), badShown)] {
		fmt.Fprintf(&text, "\n  line %d: %s", b.Line, b.Why)
	}
	if more := len(bad) - badShown; more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return fmt.Errorf("%s: %d %w:%s", path, len(bad), ErrBadRecords, text.String())
}

// Source makes a source of the records.
func (r *Records) Source(seed uint64) *Source {
	return &Source{seed: seed, pool: bytes.Join(r.Values, nil), records: r.Values}
}

// KeySet returns the keys of the records, and false if they have none of their own.
func (r *Records) KeySet() (Keys, bool) {
	if r.Keys == nil {
		return Keys{}, false
	}
	return OwnKeys(r.Keys), true
}

// MeanBytes is the mean length of the values, at least 1.
func (r *Records) MeanBytes() int {
	total := 0
	for _, v := range r.Values {
		total += len(v)
	}
	return max(1, total/len(r.Values))
}

// skipMark drops the byte order mark some programs put in front.
func skipMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) }
