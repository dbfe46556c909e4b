package scratch

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Tests runs the tests of a package with all their temporary directories in one of
// this package, and returns their exit code. A test binary that ends by a signal or
// by its -timeout removes none of its own; what this one leaves then, the next one
// removes. TestMain calls it: os.Exit(scratch.Tests(m.Run)).
func Tests(run func() int) int {
	root, release, err := Make(os.TempDir())
	if err != nil {
		fmt.Fprintln(os.Stderr, "a directory for the tests:", err)
		return 1
	}
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} { // as os.TempDir asks on Unix and Windows
		os.Setenv(name, root)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		Remove(root)
		os.Exit(130)
	}()
	defer Remove(root)
	defer release()
	return run()
}
