// Package frame encodes and decodes the checksummed records that log segments
// and manifests consist of. Bytes in, bytes out: it touches no file.
//
// # Format
//
// See docs/format/log.md. A frame is a 40-byte header, a payload and up to seven
// zero bytes, so that every frame begins at a multiple of eight. Two CRC-32C
// checksums protect it. The header's own covers the header and the frame's
// identity: the file's random id and the frame's offset in the file. The
// payload's, which the header holds, covers payload and padding. A frame copied
// to another place, or left over from an earlier use of the file, never verifies.
//
// A header that verifies is evidence by itself, even if its payload does not:
// the durable mark it carries was true when it was written. That is what tells a
// torn tail from damage (Walker.Tail).
//
// # Concurrency
//
// Functions are pure; a Walker is for one goroutine.
//
// # Invariants
//
// Each frame names the checksum of the one before it (Header.Prev), so frames
// form a chain that cannot be cut in the middle without notice.
//
// # Lifetimes
//
// Payloads returned alias the input.
package frame
