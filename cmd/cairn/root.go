package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// app is one run of the command: its streams and the flags every verb has.
type app struct {
	in       io.Reader
	out      *output
	err      io.Writer
	errIsTTY bool
	started  bool           // a verb runs: errors are its own, no longer cobra's
	cmd      *cobra.Command // the verb that runs
	opening  time.Time      // when the store began to be opened, after the wait for its lock

	writing sync.Mutex // held while a store is open to be written, and once the process is about to end
	written bool       // what was asked for is done; writing is held

	json    bool
	hex     bool
	escaped bool
	raw     bool
	wait    time.Duration
}

const rootLong = `cairn reads, writes and checks Cairn stores. A store is a directory.

Keys and values are bytes. What is printed is escaped where it could steer a
terminal: \n \r \t \\ and \xNN for all that is not printable UTF-8; only "get"
into a pipe or a file writes the value as it is. --raw, --escaped and --hex choose
one form for all output; with --escaped and --hex arguments are written in that
form too. --json prints one JSON document per line; keys and values that are not UTF-8
appear there as base64 in a field whose name ends in _base64;
help and exit-codes are text all the same.

Keys that begin with a dash follow "--":  cairn get store -- -key`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "cairn",
		Short:         "Read, write and check Cairn stores",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          commandOnly,

		PersistentPreRunE:          a.checkFlags,
		SuggestionsMinimumDistance: 2,
	}
	showVersion := root.Flags().Bool("version", false, "print what the command version prints")
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *showVersion {
			return a.verb(a.version)(cmd, args)
		}
		if !a.json { // there every line is one document
			cmd.SetOut(a.err)
			_ = cmd.Help()
		}
		return usagef("no command given; cairn --help lists the commands")
	}
	f := root.PersistentFlags()
	inJSON := a.json
	f.BoolVar(&a.json, "json", false, "print JSON, one document per line; errors too")
	a.json = inJSON // which BoolVar has just set to the default
	f.BoolVar(&a.hex, "hex", false, "hexadecimal keys and values, in arguments and output")
	f.BoolVarP(&a.escaped, "escaped", "e", false, `escaped keys and values (\n, \x00), in arguments and output`)
	f.BoolVar(&a.raw, "raw", false, "print bytes as they are, even to a terminal")
	f.DurationVar(&a.wait, "wait", 0, "wait so long for a store that is locked: `500ms`, 10s, 2m")
	f.Lookup("wait").DefValue = "" // help does not tell that it is 0
	root.SetFlagErrorFunc(flagError)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.AddCommand(newGet(a), newPut(a), newDelete(a), newScan(a), newStats(a), newVerify(a),
		newVersion(a), newExitCodes())
	takeOnce(f)
	for _, cmd := range root.Commands() {
		takeOnce(cmd.Flags())
	}
	refuseUnknown(root)
	return root
}

// verb turns a verb's function into what cobra runs.
func (a *app) verb(fn func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started, a.cmd = true, cmd
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
