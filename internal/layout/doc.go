// Package layout encodes and decodes what stands behind the blocks of a table: range
// tombstones, the index of blocks, properties and the footer, which says where each of them is.
//
// # Format
//
// docs/format/table.md. The pages that hold them, their checksums and their compression are
// package block's; which of them are read, and when, is package table's.
//
// # Invariants
//
// Whatever the bytes, decoding returns an error or something that agrees with its limits and,
// as far as it can be seen here, with the footer; it takes no more memory than the file makes
// believable. Decoded values alias what they were decoded from where a comment says so.
package layout
