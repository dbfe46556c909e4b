// Package html provides the report as one HTML file that needs nothing else: no
// network, no other file, and no script for anything but comfort.
//
// # Format
//
// The template, the style sheet and the script are embedded and written into the
// page, the charts are inline SVG, and the run itself stands in it as JSON, to be
// saved from there. A content security policy forbids the page to load anything.
//
// # Invariants
//
// Names, reasons and notes come from engines and from files of other machines: all
// of them go through html/template or an escaping of their own. A figure that does
// not exist is shown as n/a with its reason, never as a zero and never as a bar.
//
// # Concurrency
//
// Functions of their arguments; nothing is kept.
package html
