package main

import (
	"errors"
	"fmt"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// Exit codes: what scripts may rely on.
const (
	exitOK          = 0
	exitNotFound    = 1
	exitUsage       = 2
	exitLocked      = 3
	exitCorrupt     = 4
	exitEnvironment = 5
	exitInterrupted = 130 // what shells make of SIGINT
)

// codeNames are the "code" of JSON errors.
var codeNames = map[int]string{
	exitNotFound: "not_found", exitUsage: "usage", exitLocked: "locked",
	exitCorrupt: "corrupt", exitEnvironment: "environment", exitInterrupted: "interrupted",
}

var errInterrupted = errors.New("interrupted")

// errInterruptedAfter: the signal came when what was asked for had begun.
var errInterruptedAfter = fmt.Errorf("%w, but what was asked for had begun: it is done, and stays", errInterrupted)

// usageErrors are errors of the store that the command line alone causes.
var usageErrors = []error{cairn.ErrEmptyKey, cairn.ErrKeyTooLarge, cairn.ErrValueTooLarge, cairn.ErrInvalidOption}

func exitCode(err error) int {
	switch {
	case err == nil, errors.Is(err, errReaderGone):
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, new(*usageError)), isAny(err, usageErrors):
		return exitUsage
	case errors.Is(err, cairn.ErrCorrupt):
		return exitCorrupt
	case errors.Is(err, cairn.ErrLocked):
		return exitLocked
	case errors.Is(err, cairn.ErrNotFound):
		return exitNotFound
	}
	return exitEnvironment
}

func isAny(err error, targets []error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

const exitCodesText = `  0    success; also if the reader of a pipe left before it had read everything
  1    the key was not found (get; delete --must-exist)
  2    the command line is wrong: unknown command or flag, bad number of
       arguments, malformed hexadecimal, empty key, too large key or value
  3    the store is locked by another process; --wait waits for it
  4    corruption found: by verify, or met by any other verb
  5    any other error of the store, the system or the disk: there is no store,
       no permission, disk full, file written by a newer version, ...
  130  interrupted by a signal`

func newExitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "The exit codes and what they mean",
		Long:  "cairn ends with one of these codes:\n\n" + exitCodesText,
		Args:  arguments(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}
