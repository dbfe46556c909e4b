// Package tablefiles makes, opens and removes the table files of one store.
//
// # What it provides
//
// Files.Write runs a merge into new tables, synced with their names, and builds
// their point indexes on the way where there is room for them. Open, OpenListed,
// OpenAll and Discard do what they say.
//
// # Concurrency
//
// All methods may be called at once.
//
// # Lifetimes
//
// A Handle made here has no reference yet; whoever publishes it takes the first.
// Until an edit names a table its file is garbage, which the next Open removes.
package tablefiles
