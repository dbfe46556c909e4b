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
	"github.com/spf13/cobra"
)

// verifyDocument is the JSON of verify.
type verifyDocument struct {
	OK       bool      `json:"ok"`
	Tables   int       `json:"tables"`
	Bytes    int64     `json:"bytes"`
	Entries  uint64    `json:"entries"`
	Seconds  float64   `json:"seconds"`
	Problems []problem `json:"problems"`
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
		Long: `Read every byte of a store and check every checksum, the order of the keys, and
that its files agree with each other. Everything found wrong is printed; then the
exit code is 4. Progress is shown on standard error if that is a terminal.

JSON: {"ok": true|false, "tables": N, "bytes": N, "entries": N, "seconds": N,
"problems": [{"file": ..., "offset": N, "message": ...}]}; a store too damaged to
be opened has one problem.`,
		Example: "  cairn verify ./store",
		Args:    cobra.ExactArgs(1),
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.verify(ctx, args[0])
		}),
	}
}

func (a *app) verify(ctx context.Context, dir string) error {
	start := time.Now()
	var report cairn.Report
	var total atomic.Int64 // 0 while the store is being opened
	m := a.meter("verifying")
	opts := &cairn.Options{FS: &countingFS{FS: vfs.OS(), read: func(n int) {
		if t := total.Load(); t > 0 {
			m.add(int64(n), t)
		}
	}}}
	err := a.readWith(ctx, dir, opts, func(db *cairn.DB) (err error) {
		s := db.Stats()
		total.Store(s.DiskBytes - s.LogBytes)
		report, err = db.Verify(ctx)
		m.clear()
		return err
	})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return err
	}
	return a.conclude(report, err, time.Since(start))
}

// conclude prints the report. What err says beyond it is an error of its own.
func (a *app) conclude(r cairn.Report, err error, took time.Duration) error {
	if err != nil && len(r.Problems) == 0 {
		if !errors.Is(err, cairn.ErrCorrupt) {
			return err
		}
		r.Problems = []error{err} // it could not be opened
	}
	doc := &verifyDocument{OK: err == nil, Tables: r.Tables, Bytes: r.Bytes, Entries: r.Entries,
		Seconds: took.Seconds(), Problems: []problem{}}
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
	text := ""
	for _, p := range d.Problems {
		text += p.Message + "\n"
	}
	if d.OK {
		text += fmt.Sprintf("ok: %d tables, %s, %s rows, every checksum and order checked in %s\n", d.Tables,
			size(d.Bytes), humanize.Comma(int64(d.Entries)), time.Duration(d.Seconds*float64(time.Second)).Round(time.Millisecond))
	}
	return a.out.write([]byte(printable(text)))
}
