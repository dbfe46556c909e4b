// Command cairn-bench runs the workloads of the laboratory on all engines side by
// side and says first where Cairn is behind.
//
//	cairn-bench run                       the quick suite, within 10 minutes
//	cairn-bench run -full -json out.json  the full suite, and its raw figures
//	cairn-bench list                      engines, workloads, what each can do
//	cairn-bench report out.json           a saved run again, as text or HTML (out.html will do too)
//	cairn-bench compare a.json b.json     two runs, with significance
//
// Exit codes: 0 all cells count; 1 a cell is void or failed, the run could not be
// made, or compare -fail-above says so; 2 wrong usage; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cairndb/cairn/bench/internal/harness"
	"github.com/cairndb/cairn/bench/internal/report"
)

func main() {
	if harness.IsChild() {
		harness.Child()
	}
	ctx, stop := untilInterrupted(context.Background())
	defer stop()
	os.Exit(exitCode(command().ExecuteContext(ctx)))
}

// untilInterrupted ends with Ctrl-C, SIGTERM or the end of the terminal, unless the program
// was started so as to outlive that (nohup).
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(ctx, signals...)
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "cairn-bench",
		Short:         "compare embedded key-value stores on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(runCommand(), listCommand(), reportCommand(), compareCommand())
	root.SetArgs(doubleDashes(os.Args[1:]))
	return root
}

// knownVerb is asked when the first argument names no command.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("no command %q; cairn-bench -h lists them", args[0])}
	}
	return nil
}

// doubleDashes lets -suite be written for --suite, as Go's own tools do.
func doubleDashes(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if len(a) > 1 && a[0] == '-' && a != "-h" && !strings.ContainsAny(a[1:2], "-0123456789.") {
			a = "-" + a
		}
		out[i] = a
	}
	return out
}

// usageError is the caller's mistake.
type usageError struct{ error }

// errBadCells: the run was made, and cells of it do not count.
var errBadCells = errors.New("cells do not count")

// exitCode says on standard error what went wrong.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	for line := range strings.Lines(report.Printable(err.Error())) {
		fmt.Fprintln(os.Stderr, "cairn-bench:", strings.TrimSuffix(line, "\n"))
	}
	var usage usageError
	switch {
	case harness.Interrupted(err):
		fmt.Fprintln(os.Stderr, "cairn-bench: children killed, data removed")
		return 130
	case errors.As(err, &usage), harness.OfAnotherRun(err):
		return 2
	}
	return 1
}
