package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	defer context.AfterFunc(ctx, a.endSoon)()
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

// interruptGrace is how long the command may take to end after a signal.
const interruptGrace = 2 * time.Second

// endSoon ends the process after a signal if it does not end by itself, because nobody reads what it prints, say. A store that is open
// to be written is closed first; if it was, and only that cannot be printed, the command says that it is done, as far as somebody reads
// that.
func (a *app) endSoon() {
	a.writing.Lock()
	time.Sleep(interruptGrace)
	if a.written {
		time.AfterFunc(interruptGrace, func() { os.Exit(exitInterrupted) })
		a.report(a.cmd, errInterruptedAfter, exitInterrupted)
	}
	os.Exit(exitInterrupted)
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
