package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs one command line and returns its exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	// A reader that goes away shows as a failed write, not as a signal that would
	// end the process before it has closed the store.
	signal.Ignore(syscall.SIGPIPE)

	a := &app{
		in:       os.Stdin,
		out:      newOutput(os.Stdout, term.IsTerminal(int(os.Stdout.Fd()))),
		err:      os.Stderr,
		errIsTTY: term.IsTerminal(int(os.Stderr.Fd())),
		json:     asksForJSON(args), // holds even if the flags do not parse
	}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started && !errors.As(err, new(*usageError)) {
		err = &usageError{err} // cobra's: unknown command or flag, wrong number of arguments
	}
	err = a.out.flushAfter(err)
	if code := exitCode(err); code != exitOK {
		a.report(cmd, err, code)
		return code
	}
	return exitOK
}

// asksForJSON reports what the last --json says, in any form that the flag takes.
func asksForJSON(args []string) bool {
	asks := false
	for _, arg := range args {
		value, given := strings.CutPrefix(arg, "--json=")
		switch {
		case arg == "--":
			return asks
		case arg == "--json":
			asks = true
		case given:
			if v, err := strconv.ParseBool(value); err == nil {
				asks = v
			}
		}
	}
	return asks
}
