// Package itertest tests anything that implements base.Iterator.
//
// Run is the behaviour suite: it compares an iterator with a sorted slice under
// every positioning method. Entries generates what it walks. Invalidating,
// Stepping, Telling and Failing wrap an iterator to bring out mistakes of its user: keeping
// a key too long, not using or misusing NextKey, swallowing an error.
//
// Imported from tests only. Nothing here is for more than one goroutine; the
// wrappers own the iterator they wrap, Close closes it.
package itertest
