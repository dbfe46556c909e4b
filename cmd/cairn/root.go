package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// app is one run of the command: its streams and the flags every verb has.
type app struct {
	in       io.Reader
	out      *output
	err      io.Writer
	errIsTTY bool
	started  bool // a verb runs: errors are its own, no longer cobra's

	json    bool
	hex     bool
	escaped bool
	raw     bool
	wait    time.Duration
}

// usageError is an error of the command line, not of the store.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

const rootLong = `cairn reads, writes and checks Cairn stores. A store is a directory.

Keys and values are bytes. What is printed is escaped where it could steer a
terminal: \n \r \t \\ and \xNN for all that is not printable UTF-8; only "get"
into a pipe or a file writes the value as it is. --raw, --escaped and --hex choose
one form for all output; with --escaped and --hex arguments are written in that
form too. --json prints one JSON document per line; bytes that are not UTF-8
appear there as base64 in a field whose name ends in _base64.

Keys that begin with a dash follow "--":  cairn get store -- -key`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "cairn",
		Short:         "Read, write and check Cairn stores",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.err)
			_ = cmd.Help()
			return usagef("no command given")
		},
	}
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", a.json, "print JSON, one document per line; errors too")
	f.BoolVar(&a.hex, "hex", false, "hexadecimal keys and values, in arguments and output")
	f.BoolVarP(&a.escaped, "escaped", "e", false, `escaped keys and values (\n, \x00), in arguments and output`)
	f.BoolVar(&a.raw, "raw", false, "print bytes as they are, even to a terminal")
	f.DurationVar(&a.wait, "wait", 0, "how long to wait for a store that is locked")
	root.MarkFlagsMutuallyExclusive("hex", "escaped", "raw")
	root.MarkFlagsMutuallyExclusive("json", "raw")
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddCommand(newGet(a), newPut(a), newDelete(a), newScan(a), newStats(a), newVerify(a),
		newVersion(a), newExitCodes())
	return root
}

// verb turns a verb's function into what cobra runs.
func (a *app) verb(fn func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		err := fn(cmd.Context(), cmd, args)
		if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return errInterrupted
		}
		return err
	}
}

// bytes reads a key, value or bound from an argument, in the form the flags say.
func (a *app) bytes(what, arg string) ([]byte, error) {
	b, err := []byte(arg), error(nil)
	switch {
	case a.hex:
		b, err = parseHex(arg)
	case a.escaped:
		b, err = unescape(arg)
	}
	if err != nil {
		return nil, usagef("%s %q: %w", what, arg, err)
	}
	return b, nil
}
