// Package bench provides the laboratory's guide, so that a report can print the
// fairness rules in the words of the guide itself.
package bench

import _ "embed"

// Readme is the text of README.md.
//
//go:embed README.md
var Readme string
