package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// errReaderGone: whoever read standard output does not want more.
var errReaderGone = errors.New("the reader of standard output has gone")

// outputError is a failed write to standard output.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

const (
	outputBuffer = 64 << 10
	pieceBytes   = 16 << 10 // of a value that is being escaped
)

// output is standard output.
type output struct {
	w        *bufio.Writer
	terminal bool
	piece    []byte
	scratch  bytes.Buffer
}

func newOutput(w io.Writer, terminal bool) *output {
	return &output{w: bufio.NewWriterSize(w, outputBuffer), terminal: terminal}
}

// Write makes output what cobra prints help to.
func (o *output) Write(b []byte) (int, error) {
	if err := o.write(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (o *output) write(b []byte) error {
	_, err := o.w.Write(b)
	return outcome(err)
}

func (o *output) flush() error { return outcome(o.w.Flush()) }

// flushAfter flushes what was written before err, which comes first where both fail.
func (o *output) flushAfter(err error) error {
	if flushed := o.flush(); err == nil {
		return flushed
	}
	return err
}

// endLine ends a line; on a terminal it appears at once.
func (o *output) endLine() error {
	err := o.w.WriteByte('\n')
	if err == nil && o.terminal {
		err = o.w.Flush()
	}
	return outcome(err)
}

func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case isBrokenPipe(err):
		return errReaderGone
	}
	return &outputError{fmt.Errorf("write to standard output: %w", err)}
}

// form is how bytes are printed.
type form uint8

const (
	formRaw form = iota
	formEscaped
	formHex
)

// form returns the form the flags ask for, or else the given one.
func (a *app) form(otherwise form) form {
	switch {
	case a.raw:
		return formRaw
	case a.escaped:
		return formEscaped
	case a.hex:
		return formHex
	}
	return otherwise
}

// bytes writes b in a form, piece by piece: a value may be large.
func (o *output) bytes(b []byte, f form) error {
	if f == formRaw {
		return o.write(b)
	}
	for len(b) > 0 {
		n := cut(b, pieceBytes)
		if f == formHex {
			o.piece = hex.AppendEncode(o.piece[:0], b[:n])
		} else {
			o.piece = appendEscaped(o.piece[:0], b[:n])
		}
		if err := o.write(o.piece); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// cut returns a length of at most limit that does not end inside a character.
func cut(b []byte, limit int) int {
	if len(b) <= limit {
		return len(b)
	}
	for n := limit; n > limit-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			return n
		}
	}
	return limit // no character begins so close before it that it could be inside
}

// readAll reads r to its end, at most limit bytes, and stops waiting when ctx ends.
func readAll(ctx context.Context, r io.Reader, limit int64) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, limit+1)) })
}

// await returns what fn does, or the error of ctx if that ends first: fn goes on by itself.
func await[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := fn()
		done <- result{v, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case res := <-done:
		return res.v, res.err
	}
}
