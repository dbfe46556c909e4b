package memfs

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
)

const sectorBytes = 512

// image builds the FS that the fates of the pending operations leave. It changes
// nothing of d but who may write shared chunks.
func (d *disk) image(fates []fate) *FS {
	f := newImage(d.nextID)
	b := builder{disk: d, dirs: d.keptEntries(fates), files: make(map[uint64]*node, len(d.files))}
	b.fill(f.root)
	for i := range d.pending {
		p := &d.pending[i]
		if to := b.files[p.m.id]; to != nil && !p.entry() {
			p.suffer(&to.data, fates[i])
		}
	}
	for _, n := range b.files {
		f.used += n.data.held * chunkBytes
	}
	f.journal = newJournal(f, f.settled())
	return f
}

// keptEntries returns the directories with the kept changes made to them. Those
// that do not change are d's own.
func (d *disk) keptEntries(fates []fate) map[uint64]map[string]uint64 {
	changed := map[uint64]map[string]uint64{}
	for i := range d.pending {
		if p := &d.pending[i]; p.entry() && fates[i].kind == fateKept {
			p.m.changeEntry(func(id uint64) map[string]uint64 {
				if changed[id] == nil && d.dirs[id] != nil {
					changed[id] = maps.Clone(d.dirs[id])
				}
				return changed[id]
			})
		}
	}
	return changed
}

type builder struct {
	disk  *disk
	dirs  map[uint64]map[string]uint64 // changed directories
	files map[uint64]*node             // files reached so far: hard links share a node
}

// fill gives a directory its entries, recursively. What no name leads to from the
// root is gone.
func (b *builder) fill(dir *node) {
	entries := b.dirs[dir.id]
	if entries == nil {
		entries = b.disk.dirs[dir.id]
	}
	for name, id := range entries {
		if _, isDir := b.disk.dirs[id]; isDir {
			child := &node{id: id, names: 1, entries: map[string]*node{}}
			dir.entries[name] = child
			b.fill(child)
		} else if c := b.disk.files[id]; c != nil {
			dir.entries[name] = b.file(id, c)
		}
	}
}

func (b *builder) file(id uint64, c *content) *node {
	n := b.files[id]
	if n == nil {
		n = &node{id: id, data: c.snapshot()}
		b.files[id] = n
	}
	n.names++
	return n
}

// suffer does to a file what the fate of a write or preallocation leaves of it.
func (p *pendingOp) suffer(to *content, f fate) {
	switch f.kind {
	case fateKept:
		p.apply(to)
	case fateTorn:
		p.sufferTorn(to, f)
	case fateSectors:
		p.sufferSectors(to, f)
	}
	if f.grown {
		to.grow(p.off + p.n)
	}
}

func (p *pendingOp) sufferTorn(to *content, f fate) {
	arrived := min(max(f.bytes, 0), p.n)
	if p.m.kind == OpPreallocate {
		to.reserve(p.off, arrived)
		return
	}
	to.writeAt(p.data[:arrived], p.off)
	p.fillIn(to, p.off+arrived, p.off+p.n, f.fill)
}

func (p *pendingOp) sufferSectors(to *content, f fate) {
	first := p.off / sectorBytes
	for s := first; s*sectorBytes < p.off+p.n; s++ {
		from, end := max(s*sectorBytes, p.off), min((s+1)*sectorBytes, p.off+p.n)
		arrived := f.sectors>>((s-first)%64)&1 == 1
		switch {
		case arrived && p.m.kind == OpPreallocate:
			to.reserve(from, end-from)
		case arrived:
			to.writeAt(p.data[from-p.off:end-p.off], from)
		default:
			p.fillIn(to, from, end, f.fill)
		}
	}
}

// fillIn shows fill in [from, end). Preallocated space never shows anything but
// what was there.
func (p *pendingOp) fillIn(to *content, from, end int64, fill Fill) {
	if from >= end || p.m.kind == OpPreallocate {
		return
	}
	switch fill {
	case FillZeros:
		to.writeAt(make([]byte, end-from), from)
	case FillGarbage:
		to.writeAt(garbage(uint64(p.ordinal), uint64(from), int(end-from)), from)
	}
}

// garbage depends on nothing but its arguments.
func garbage(seed, off uint64, n int) []byte {
	r := rand.NewPCG(seed, off)
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}
