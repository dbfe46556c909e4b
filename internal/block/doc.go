// Package block turns rows into pages and pages into rows: bytes in, bytes out.
//
// A block of a table is one key page and the value pages beside it. The package
// provides the page envelope every part of a table is stored in (page.go:
// codec, lengths, checksum bound to file, place and purpose), the codecs
// (codec.go), the column encoding of integers (column.go), the stored form of a
// key page (keystored.go) and the form it has in memory (keypage.go).
//
// # Format
//
// docs/format/table.md, sections "Page", "Columns" and "Key page". The form of
// a key page in memory is private to this package and to one process:
//
//	norms    8 bytes a row: the first 8 bytes after the common prefix, as an integer
//	keyEnds  4 bytes a row and one more, if keys differ in length
//	valEnds  4 bytes a row and one more, if values differ in length
//	seqs     4 or 8 bytes a row, if sequences differ
//	kinds    1 byte a row, if kinds differ
//	heap     the whole keys, one after another
//	trailer  64 bytes, the last of the form (see putTrailer)
//
// Keys stand whole in the heap so that an iterator hands them out without
// copying. The trailer stands at the end because pages start at multiples of
// 4 KiB: a header at the front of every page would fight for a few cache sets.
//
// # Concurrency
//
// Identity, Keys and all functions are safe for concurrent use as long as
// nobody writes the bytes they look at. A KeyBuilder belongs to one goroutine.
//
// # Invariants
//
// Decoders accept any bytes: they return an error or a form whose rows are in
// order, never read or write outside their arguments and never allocate more
// than MaxPageBytes. Decompression writes into a buffer of the declared length.
//
// # Lifetimes
//
// Keys and what it returns alias the form; a Page aliases the bytes it was
// parsed from.
package block
