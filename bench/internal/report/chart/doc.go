// Package chart provides the drawings of the report as SVG text: bars with
// intervals, latency curves, times by the number of keys, seconds of a timed run.
//
// # Format
//
// An SVG element without a size of its own beyond its viewBox, without fonts and
// without colours: classes name the parts and the page's style sheet paints them, so
// that one drawing serves light, dark and print. All text given is escaped.
//
// # Invariants
//
// A missing figure is drawn as its word, never as a bar of no length. A bar that is
// longer than the scale ends in a notch and still has its figure beside it.
//
// # Concurrency
//
// Functions of their arguments; nothing is kept.
package chart
