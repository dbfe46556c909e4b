// Package lint holds the house rules as tests: who may import whom, how long
// files and functions may be, what must be documented, where unsafe may stand.
// They parse the sources themselves, so the test cache cannot hide a violation.
// What scripts/ refuse is tested here, too.
package lint
