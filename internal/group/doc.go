// Package group commits for many goroutines at once.
//
// # What it provides
//
// Queue: what was appended to a log and waits for its outcome. Some waiting committer leads a
// round on its own goroutine: one write for everything that was appended, one sync if anything
// in the round is durable. Nobody waits in order to make a group larger; but of those who
// waited, whose commits are done are woken first and who leads next last, so that the commits
// that follow at once are in its round. (The idea of one sync for many is that of DeWitt et al.,
// Implementation Techniques for Main Memory Database Systems, SIGMOD 1984.)
//
// What a write is, and what becomes of commits when it has succeeded or failed, is the Log's
// business.
//
// # Concurrency
//
// A Queue is guarded by a lock of its user, held in every call where it does not say otherwise.
package group
