//go:build !invariants && !race

package invariants

// Enabled says whether assertions are compiled in; in this build they are not.
const Enabled = false
