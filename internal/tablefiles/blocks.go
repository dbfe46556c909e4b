package tablefiles

import "github.com/cairndb/cairn/internal/table"

// A block is decompressed as a whole for any value of it, and read from the disk as a whole:
// large ones compress better, small ones cost less where what is read is not in memory. So
// blocks are large as long as the store is decoded in memory, and small when it has outgrown
// that, but not so small that what is kept in memory of each block takes much of it. Of
// 268 MB with 64 MiB of memory a get takes 340 us with blocks of 64 KiB, 92 with 8 KiB, and
// the tables 14 % more space (docs/TRIED.md).
const (
	leastBlockBytes = 8 << 10

	// blockMetaBytes is about what a Reader keeps in memory of a block, and metaShare the part
	// of Memory that all blocks may take of it.
	blockMetaBytes = 84
	metaShare      = 5

	// residentShare: tables count as decoded in memory up to one part in so many of it.
	residentShare = 2
)

// blockBytes returns the size of the blocks to write in a store whose tables hold raw bytes.
func blockBytes(raw, memory int64) int {
	size := int64(leastBlockBytes)
	for size < table.DefaultBlockBytes && (raw <= memory/residentShare || raw/size*blockMetaBytes > memory/metaShare) {
		size *= 2
	}
	return int(size)
}
