package tablefiles

import (
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/manifest"
)

// Profile selects the codecs of a store's tables.
type Profile uint8

const (
	ProfileBalanced Profile = iota // S2 on upper levels, zstd on the last
	ProfileFast                    // S2 everywhere
	ProfileSmall                   // zstd everywhere
	ProfileNone                    // no compression
)

// codec returns the codec for tables of a level.
func (p Profile) codec(level int) block.Codec {
	switch p {
	case ProfileNone:
		return block.None
	case ProfileFast:
		return block.S2
	case ProfileSmall:
		return block.Zstd
	}
	if level == manifest.Bottom {
		return block.Zstd
	}
	return block.S2
}
