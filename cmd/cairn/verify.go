package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"
)

// verifyDocument is the JSON of verify.
type verifyDocument struct {
	OK       bool    `json:"ok"`
	Tables   int     `json:"tables"`
	Bytes    int64   `json:"bytes"`
	Entries  uint64  `json:"entries"`
	LogBytes int64   `json:"log_bytes"`
	Seconds  float64 `json:"seconds"`

	Recovery recoveryDocument `json:"recovery"`
	Problems []problem        `json:"problems"`
}

// problem is one thing that is wrong; file and offset as far as they are known.
type problem struct {
	File    string `json:"file,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Message string `json:"message"`
}

// damageError ends a verify that found something.
type damageError struct {
	n     int
	cause error
}

func (e *damageError) Error() string {
	if e.n == 1 {
		return "1 problem found"
	}
	return fmt.Sprintf("%d problems found", e.n)
}

func (e *damageError) Unwrap() error { return e.cause }

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify STORE",
		Short: "Read all of a store and check it",
		Long: `Read every table of a store in full and check every checksum, the order of the
keys, and that its files agree. Everything found wrong is printed; then the exit
code is 4. Progress is shown on standard error if that is a terminal.

The log of a store that was not closed is replayed, which checks it up to the last
whole commit. What stands behind that is left out by every verb, and removed by
the next one that writes. A crash leaves such a tail, so it is no failure; but
damage that reaches to the end of the log looks the same, so it is printed.

JSON: {"ok": true|false, "tables": N, "bytes": N, "entries": N, "log_bytes": N,
"seconds": N, "recovery": {as of stats}, "problems": [{"file": ..., "offset": N,
"message": ...}]}; log_bytes is what was replayed of the log, recovery says what
was left out; a store too damaged to be opened has one problem.`,
		Example: "  cairn verify ./store",
		Args:    arguments(1, 1),
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.verify(ctx, args[0])
		}),
	}
}

func (a *app) verify(ctx context.Context, dir string) error {
	p, err := locate(dir)
	if err != nil {
		return err
	}
	var report cairn.Report
	var stats cairn.Stats
	var total atomic.Int64 // 0 while the store is being opened
	m := a.meter("verifying")
	opts := &cairn.Options{FS: &countingFS{FS: vfs.OS(), read: func(n int) {
		if t := total.Load(); t > 0 {
			m.add(int64(n), t)
		}
	}}}
	err = a.readWith(ctx, p, opts, func(db *cairn.DB) (err error) {
		stats = db.Stats()
		total.Store(stats.DiskBytes - stats.LogBytes)
		report, err = db.Verify(ctx)
		m.clear()
		return err
	})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return err
	}
	return a.conclude(stats, report, err, time.Since(a.opening))
}

// conclude prints the report. What err says beyond it is an error of its own.
func (a *app) conclude(s cairn.Stats, r cairn.Report, err error, took time.Duration) error {
	if err != nil && len(r.Problems) == 0 {
		if !errors.Is(err, cairn.ErrCorrupt) {
			return err
		}
		r.Problems = []error{err} // it could not be opened
	}
	doc := &verifyDocument{OK: err == nil, Tables: r.Tables, Bytes: r.Bytes, Entries: r.Entries,
		LogBytes: s.LogBytes, Recovery: newRecoveryDocument(s.Recovery), Seconds: took.Seconds(), Problems: []problem{}}
	for _, p := range r.Problems {
		doc.Problems = append(doc.Problems, newProblem(p))
	}
	printing := a.printVerify(doc)
	if len(r.Problems) > 0 {
		return &damageError{n: len(r.Problems), cause: err}
	}
	return errors.Join(err, printing)
}

func newProblem(err error) problem {
	p := problem{Message: message(err)}
	var corrupt *cairn.CorruptionError
	if errors.As(err, &corrupt) {
		p.File, p.Offset = corrupt.File, offsetOf(corrupt)
	}
	return p
}

func (a *app) printVerify(d *verifyDocument) error {
	if a.json {
		return a.out.document(d)
	}
	return a.out.write([]byte(d.text()))
}

func (d *verifyDocument) text() string {
	text := ""
	for _, p := range d.Problems {
		text += printable(p.Message) + "\n"
	}
	if d.OK {
		text += fmt.Sprintf("ok: %s, %s, %s %s, %s in %s\n", english.Plural(d.Tables, "table", ""), size(d.Bytes),
			humanize.Comma(int64(d.Entries)), english.PluralWord(int(min(d.Entries, 2)), "row", ""), d.checked(), seconds(d.Seconds).Round(time.Millisecond))
	}
	if d.Recovery.DroppedBytes > 0 {
		text += "not checked, " + d.Recovery.dropped() + "; a crash leaves that, and it is not counted as damage\n"
	}
	return text
}

// checked says what was checked, and promises no more.
func (d *verifyDocument) checked() string {
	switch {
	case !d.Recovery.Needed:
		return "every checksum and order checked"
	case d.Recovery.DroppedBytes > 0:
		return fmt.Sprintf("and %s of log replayed, checksums and order of these checked", size(d.LogBytes))
	}
	return fmt.Sprintf("and %s of log replayed, every checksum and order checked", size(d.LogBytes))
}
