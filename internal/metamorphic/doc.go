// Package metamorphic runs random calls of the whole API against a store and a
// model of it, under random options and on disks that fail. It is imported from
// nowhere.
//
// # What it provides
//
// TestMetamorphic takes seeds, one after the other. A seed makes options, a kind of
// disk, keys and values, and a plan: rounds, in each of which one to four actors
// call the store at once, each on keys of its own. An actor knows exactly what each
// call has to return, in every snapshot, transaction and iterator it has open. What
// failed is expected to have changed nothing, and an unknown commit is settled by
// the next Open. Between rounds, and in them, the store is closed, killed or cut off
// from power, and what is then there compared with what was promised.
//
// # State
//
// The model is a persistent ordered map: each state of it is a root, and a snapshot
// costs nothing. An actor keeps the roots since the last commit that was durable:
// what a power cut leaves has to be one of them.
//
// # The argument
//
// A transaction that commits is replayed, reads and writes in order, on the state it
// committed upon: it was serializable if every read returns the same there. One that
// was refused has to have read something that another commit wrote. See
// docs/INVARIANTS.md for what else is promised.
//
// # Reproduction
//
// Each step is a number and draws what it does from that alone, so a plan of which
// steps are left out is a plan still: a failure is made shorter by leaving out all
// that it does not need. Background work is not part of the plan, so a seed repeats
// the calls, and not always the failure.
package metamorphic
