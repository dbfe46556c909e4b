package memfs

import (
	"maps"
	"slices"
)

// disk is what is durable at one point of the journal and what is on its way:
// everything a power cut there needs to know.
type disk struct {
	nextID  uint64                       // above every inode
	files   map[uint64]*content          // durable bytes by inode
	dirs    map[uint64]map[string]uint64 // durable entries by inode of the directory
	pending []pendingOp                  // in the order they were made
}

// pendingOp is an operation that no sync has covered.
type pendingOp struct {
	m       *mutation
	ordinal int
	off, n  int64  // of a write or preallocation: the part that still counts
	data    []byte // of a write: its bytes
	doomed  bool   // a failed sync dropped it from the cache: no later sync covers it
}

func (p *pendingOp) entry() bool { return p.m.kind.entry() }

// settled describes a file system that has nothing pending. The caller holds f.mu.
func (f *FS) settled() disk {
	d := disk{
		nextID: f.nextID,
		files:  map[uint64]*content{},
		dirs:   map[uint64]map[string]uint64{},
	}
	d.take(f.root)
	return d
}

func (d *disk) take(n *node) {
	if !n.dir() {
		c := n.data.snapshot()
		d.files[n.id] = &c
		return
	}
	entries := make(map[string]uint64, len(n.entries))
	for name, child := range n.entries {
		entries[name] = child.id
		d.take(child)
	}
	d.dirs[n.id] = entries
}

func (d *disk) clone() disk {
	twin := disk{
		nextID:  d.nextID,
		files:   make(map[uint64]*content, len(d.files)),
		dirs:    make(map[uint64]map[string]uint64, len(d.dirs)),
		pending: slices.Clone(d.pending),
	}
	for id, c := range d.files {
		copied := c.snapshot()
		twin.files[id] = &copied
	}
	for id, entries := range d.dirs {
		twin.dirs[id] = maps.Clone(entries)
	}
	return twin
}

// apply moves d past mutation m.
func (d *disk) apply(m *mutation, ordinal int) {
	switch m.kind {
	case OpSync:
		d.settleFile(m.id)
	case OpSyncFailed:
		d.doom(m.id)
	case OpSyncDir:
		d.settleDir(m.dir)
	case OpTamper:
		d.tamper(m)
	default:
		d.makeInode(m)
		if !m.kind.entry() && d.files[m.id] == nil {
			return // no name leads to this file any more, nor ever will
		}
		d.pending = append(d.pending, pendingOp{m: m, ordinal: ordinal, off: m.off, n: m.n, data: m.data})
	}
}

// makeInode: an inode is nothing durable by itself; only names lead to it.
func (d *disk) makeInode(m *mutation) {
	switch m.kind {
	case OpCreate:
		d.files[m.id] = new(content)
	case OpMkdir:
		d.dirs[m.id] = map[string]uint64{}
	default:
		return
	}
	d.nextID = max(d.nextID, m.id+1)
}

// settleFile makes the writes to a file durable, those doomed excepted. What is
// settled lies above what was doomed before it.
func (d *disk) settleFile(id uint64) {
	file, kept := d.files[id], make([]pendingOp, 0, len(d.pending))
	for _, p := range d.pending {
		if p.entry() || p.m.id != id || p.doomed {
			kept = append(kept, p)
			continue
		}
		if p.m.kind == OpWrite {
			kept = cutBelow(kept, id, p.off, p.n)
		}
		p.apply(file)
	}
	d.pending = kept
}

// apply does the whole operation to the file's bytes.
func (p *pendingOp) apply(to *content) {
	if p.m.kind == OpPreallocate {
		to.reserve(p.off, p.n)
		return
	}
	to.writeAt(p.data, p.off)
}

// cutBelow removes [off, off+n) from the pending writes to a file in ops.
func cutBelow(ops []pendingOp, id uint64, off, n int64) []pendingOp {
	rest := make([]pendingOp, 0, len(ops))
	for _, p := range ops {
		if p.m.kind != OpWrite || p.m.id != id || p.off >= off+n || off >= p.off+p.n {
			rest = append(rest, p)
			continue
		}
		if p.off < off {
			rest = append(rest, p.part(p.off, off))
		}
		if p.off+p.n > off+n {
			rest = append(rest, p.part(off+n, p.off+p.n))
		}
	}
	return rest
}

// part is the write restricted to file offsets [from, to).
func (p pendingOp) part(from, to int64) pendingOp {
	p.data = p.data[from-p.off : to-p.off]
	p.off, p.n = from, to-from
	return p
}

func (d *disk) doom(id uint64) {
	for i := range d.pending {
		if p := &d.pending[i]; !p.entry() && p.m.id == id {
			p.doomed = true
		}
	}
}

// settleDir makes the entry changes that touch a directory durable.
func (d *disk) settleDir(dir uint64) {
	d.settleEntries(func(s slot) bool { return s.dir == dir })
}

// settleEntries makes the changes of the entries that match durable, and with them
// those that keepEarlier ties to them.
func (d *disk) settleEntries(match func(slot) bool) {
	keep := make([]bool, len(d.pending))
	for i, p := range d.pending {
		keep[i] = p.entry() && slices.ContainsFunc(p.m.slots(), match)
	}
	keepEarlier(d.pending, keep)
	rest := d.pending[:0:0]
	for i, p := range d.pending {
		if keep[i] {
			p.m.changeEntry(func(id uint64) map[string]uint64 { return d.dirs[id] })
		} else {
			rest = append(rest, p)
		}
	}
	d.pending = rest
}

// slot is one name in one directory.
type slot struct {
	dir  uint64
	name string
}

func (m *mutation) slots() []slot {
	first := slot{m.dir, m.name}
	if m.kind == OpRename {
		return []slot{first, {m.dir2, m.name2}}
	}
	return []slot{first}
}

// keepEarlier adds to keep every entry change that a later kept one implies.
//
//   - One that touches a name which the later one touches too. A slot shows a prefix
//     of its history, and a rename ties two slots together: without this, a lost
//     rename and a kept later change of its old name would make the renamed file
//     vanish or appear twice.
//   - The making of the directory into which the later one moved something from
//     another directory: else the file moved would be under neither name. (Within a
//     directory that is lost, everything is lost, renamed or not.)
func keepEarlier(ops []pendingOp, keep []bool) {
	touched, needed := map[slot]bool{}, map[uint64]bool{}
	for i := len(ops) - 1; i >= 0; i-- {
		if !ops[i].entry() {
			continue
		}
		m := ops[i].m
		keep[i] = keep[i] || slices.ContainsFunc(m.slots(), func(s slot) bool { return touched[s] }) ||
			m.kind == OpMkdir && needed[m.id]
		if !keep[i] {
			continue
		}
		for _, s := range m.slots() {
			touched[s] = true
		}
		switch {
		case m.kind == OpRename && m.dir != m.dir2:
			needed[m.dir2] = true
		case m.kind == OpMkdir && needed[m.id]:
			needed[m.dir] = true
		}
	}
}

// changeEntry does the entry change to the directories that dirs returns; nil is
// a directory that does not exist on this disk.
func (m *mutation) changeEntry(dirs func(id uint64) map[string]uint64) {
	from := dirs(m.dir)
	switch m.kind {
	case OpRemove:
		delete(from, m.name)
	case OpRename:
		delete(from, m.name)
		if to := dirs(m.dir2); to != nil {
			to[m.name2] = m.id
		}
	default:
		if from != nil {
			from[m.name] = m.id
		}
	}
}

// tamper: whoever changes a file from outside changes the disk itself.
func (d *disk) tamper(m *mutation) {
	c := m.after
	d.files[m.id] = &c
	d.nextID = max(d.nextID, m.id+1)
	d.pending = slices.DeleteFunc(slices.Clone(d.pending), func(p pendingOp) bool {
		return !p.entry() && p.m.id == m.id
	})
	if m.name == "" {
		return
	}
	d.settleEntries(func(s slot) bool { return s == slot{m.dir, m.name} })
	if entries := d.dirs[m.dir]; entries != nil {
		entries[m.name] = m.id
	}
}

// forgetUnreachable drops inodes that no durable or pending name leads to.
func (d *disk) forgetUnreachable() {
	live := map[uint64]bool{rootID: true}
	for _, entries := range d.dirs {
		for _, id := range entries {
			live[id] = true
		}
	}
	for _, p := range d.pending {
		if p.entry() {
			live[p.m.id] = true
		}
	}
	maps.DeleteFunc(d.files, func(id uint64, _ *content) bool { return !live[id] })
	maps.DeleteFunc(d.dirs, func(id uint64, _ map[string]uint64) bool { return !live[id] })
	d.pending = slices.DeleteFunc(d.pending, func(p pendingOp) bool {
		return !p.entry() && !live[p.m.id]
	})
}
