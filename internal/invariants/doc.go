// Package invariants checks our own assumptions while testing and costs
// nothing in production.
//
// Enabled is a constant chosen by build tag: true with -tags invariants and
// under the race detector, false otherwise, so that a check guarded by it is
// removed by the compiler. Only broken promises of our own code are asserted;
// bad bytes on disk are errors (base.CorruptionError), never assertions.
//
// Concurrency: everything here may be called from any goroutine. The package
// has no state, no lifetimes and imports nothing of ours.
package invariants

import "fmt"

// Assert panics with the formatted message if ok is false and Enabled is
// true; otherwise it does nothing. The arguments are evaluated by the caller:
// guard a costly condition by Enabled.
func Assert(ok bool, format string, args ...any) {
	if Enabled && !ok {
		panic("cairn: broken invariant: " + fmt.Sprintf(format, args...))
	}
}
