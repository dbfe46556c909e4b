// Package published provides the figures of the articles the workloads come from,
// and what can be said about why a measured figure differs.
//
// # Format
//
// published.json keeps the figures as they were printed, in the articles' own units
// and shapes. Articles turns them into figures per operation, so that they can stand
// beside measured ones.
//
// # Invariants
//
// A Reason says what it rests on, with file and function where that is source, so
// that a reader can look there. What could not be verified says so and what is
// missing.
package published
