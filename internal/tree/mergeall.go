package tree

import "github.com/cairndb/cairn/internal/manifest"

// mergeAllShare: everything is merged at once if what lies above the last level is at
// least one part in this many of what lies there.
const mergeAllShare = 10

// TableBytes returns what all tables take on disk.
func (rs *State) TableBytes() (n int64) {
	for _, meta := range rs.Version.Tables() {
		n += meta.Size
	}
	return n
}

// RawBytes returns the bytes of keys and values in all tables; of no state, 0.
func (rs *State) RawBytes() (n int64) {
	if rs == nil {
		return 0
	}
	for _, meta := range rs.Version.Tables() {
		n += meta.RawBytes
	}
	return n
}

// WorthMergingAll reports whether there are memtables, and so much in them and above
// the last level that it would be merged into the last level anyway, and no more than
// limit bytes in all.
func (rs *State) WorthMergingAll(limit int64) bool {
	above := int64(0)
	for _, l := range rs.Layers {
		if l.Mem == nil {
			return false // of a large transaction: a table as it stands
		}
		above += l.Mem.LogBytes()
	}
	bottom := int64(0)
	for _, meta := range rs.Version.Levels[manifest.Bottom] {
		bottom += meta.Size
	}
	above += rs.TableBytes() - bottom
	return above > 0 && len(rs.Layers) > 0 && above+bottom <= limit && above*mergeAllShare >= bottom
}
