// Package data provides the bytes every engine is measured with: keys, values,
// orders, all from one seed, so that every engine and every round gets the same.
//
// # Format
//
// A key is 16 decimal digits (or as many as were asked for), the id padded with
// zeros, so that byte order is the order of ids. A value is a window into a pool of
// PoolBytes of JSON-lines log text; where the window begins is a hash of seed, id
// and version. The text is made of Zipfian words from a vocabulary of a few
// thousand, ids, timestamps, addresses and amounts. A test holds it to the
// compressibility of real records: by snappy 1.5 to 1.7 in blocks of 4 KiB, 1.75 to
// 1.95 in blocks of 32 KiB.
//
// A File of the user's own records (JSON lines or CSV) takes the place of the pool:
// each record as it stands is a value, a field of it may be the key.
//
// Which key comes when is drawn by a Chooser: sequential, uniform, Zipfian, Zipfian
// scrambled, or Zipfian from the latest.
//
// # Concurrency
//
// A Source, a Keys and a permutation are immutable once made: any goroutine may
// read them. A Chooser is for one goroutine.
//
// # Lifetimes
//
// Slices returned by Value and At share memory with the pool and the slab and
// live as long as those. Nobody may write to them.
package data
