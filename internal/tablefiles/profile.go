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

// Effort is what is put into tables.
type Effort uint8

const (
	// Quick: one processor compresses, the last level with S2 too if that is its choice:
	// what is there is soon merged again, or compressed well when there is time.
	Quick Effort = iota
	// Beside: one processor compresses, beside those that write and read.
	Beside
	// Flush: as Beside, but where commits have to wait for it (Files.Pressed) it takes a processor as anybody does.
	Flush
	// Idle: as Quick, but all processors compress that nobody else wants.
	Idle
	// Awaited: all processors compress.
	Awaited
)

// Alone returns the effort of one processor of several that write tables side by side.
func (e Effort) Alone() Effort {
	switch e {
	case Idle:
		return Quick
	case Awaited:
		return Beside
	}
	return e
}

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
