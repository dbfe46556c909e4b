package block

import (
	"hash/crc32"

	"github.com/cairndb/cairn/internal/base"
)

// sumOf continues the identity's checksum the plain way.
func (id Identity) sumOf(b []byte) uint32 { return crc32.Update(id.seed, base.Castagnoli, b) }
