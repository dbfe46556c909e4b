package compact

import (
	"bytes"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/block"
	"github.com/cairndb/cairn/internal/iterator"
	"github.com/cairndb/cairn/internal/tombstone"
)

// Output is where rows go: a table being written.
type Output interface {
	Add(key []byte, seq uint64, kind base.Kind, value []byte) error
	AddRangeDelete(low, high []byte, seq uint64) error
	EstimatedBytes() int64
	WriteOut() error // reads what was added for the last time
	Finish() (base.TableMeta, error)
	Abandon() error
}

// blockOutput may be implemented by an Output that takes whole blocks as they are stored: see table.Writer.
type blockOutput interface {
	TakesBlock(raw int, c block.Codec) bool
	AddBlock(b *block.Stored) (ok bool, err error)
}

// Merge says how rows become tables.
type Merge struct {
	Rows       base.Iterator   // all rows of the inputs, (key ascending, sequence descending)
	Tombstones *tombstone.List // all range tombstones of the inputs
	Snapshots  tombstone.Stripes
	Bottom     bool   // nothing older than the inputs lies under their keys
	Low, High  []byte // keys from Low on and below High; nil: from the first, to the last

	TargetBytes int64                  // a table is ended at the first key behind this size
	Create      func() (Output, error) // opens the next table

	// Grandparents are the tables that the outputs will be merged with one day; a
	// table is ended before it overlaps more than GrandparentBytes of them.
	Grandparents     []*base.TableMeta
	GrandparentBytes int64

	Check func() error // asked now and then; an error ends the merge
	Read  func()       // if not nil, called once all inputs have been read, before the last table is synced

	unchecked int // bytes written since Check was asked

	deletes []version // at the bottom: of the current key, newer than all that was written of it

	blocks iterator.Carrier // Rows, if whole blocks may be taken of it; nil: they may not
	stored block.Stored

	passed   int   // grandparents that lie behind
	overlaps int64 // bytes of those passed since the table began

	out   Output
	low   []byte // where the table being written begins; nil: before everything
	metas []base.TableMeta
	left  Leftover // of the table being written
	lefts []Leftover
}

// Leftovers returns, for each table Run returned, what it holds only because
// snapshots can still see it.
func (m *Merge) Leftovers() []Leftover { return m.lefts }

// checkRows and CheckBytes are after how many rows, or bytes of them that were written,
// Check is asked.
const (
	checkRows  = 4096
	CheckBytes = 1 << 20
)

// Run writes the rows that any reader can still see to new tables whose ranges do
// not overlap, and returns their descriptions. Range tombstones are cut at the
// borders of tables. On an error the unfinished table is abandoned; the finished
// ones are in the result and are the caller's to remove.
func (m *Merge) Run() ([]base.TableMeta, error) {
	m.low = m.Low
	err := m.rows()
	if err == nil {
		err = m.finish(m.High, m.Read)
	}
	if err != nil && m.out != nil {
		m.out.Abandon()
	}
	return m.metas, err
}

func (m *Merge) rows() error {
	prune := tombstone.Pruner{Stripes: m.Snapshots}
	cover := tombstone.NewCursor(m.Tombstones)
	var last []byte
	newer := uint64(0) // sequence of the version before, of the same key
	n := 0
	if m.Tombstones.Empty() {
		m.blocks, _ = m.Rows.(iterator.Carrier)
	}
	for ok := m.first(); ok; {
		if n++; (n%checkRows == 0 || m.unchecked >= CheckBytes) && m.Check != nil {
			m.unchecked = 0
			if err := m.Check(); err != nil {
				return err
			}
		}
		key, seq, kind := m.Rows.Key(), m.Rows.Seq(), m.Rows.Kind()
		if n == 1 || !bytes.Equal(key, last) {
			if m.High != nil && bytes.Compare(key, m.High) >= 0 {
				break
			}
			prune.NextKey()
			newer, m.deletes = 0, m.deletes[:0]
			last = append(last[:0], key...)
			if err := m.border(key); err != nil {
				return err
			}
			if took, err := m.takeBlock(); err != nil {
				return err
			} else if took {
				ok = m.blocks.SkipBlock()
				continue
			}
		}
		hides := cover.Cover(key, everything)
		if newer > seq && (hides <= seq || newer < hides) {
			hides = newer
		}
		newer = seq
		if prune.Keep(seq, cover.Cover(key, prune.Ceiling(seq))) {
			if err := m.keep(key, version{seq, hides}, kind); err != nil {
				return err
			}
		}
		ok = m.Rows.Next()
	}
	return m.Rows.Err()
}

// takeBlock writes the block that the current row begins as it is stored, if no other source has a key in it and nothing
// in it changes: its rows are seen by everybody, and the first is of another key than the row before. Next comes the row
// behind it, which is of another key, too.
func (m *Merge) takeBlock() (took bool, err error) {
	if m.blocks == nil {
		return false, nil
	}
	raw, codec, ok := m.blocks.Whole(m.High)
	if !ok {
		return false, nil
	}
	if err := m.open(); err != nil {
		return false, err
	}
	out, ok := m.out.(blockOutput)
	if !ok {
		m.blocks = nil
		return false, nil
	}
	if !out.TakesBlock(raw, codec) {
		return false, nil
	}
	if err := m.blocks.Carry(&m.stored); err != nil {
		return false, err
	}
	m.unchecked += raw
	return out.AddBlock(&m.stored)
}

// first goes to the first row.
func (m *Merge) first() bool {
	if m.Low == nil {
		return m.Rows.First()
	}
	return m.Rows.SeekGE(m.Low)
}

// border ends the table being written before key if it is large enough, or
// overlaps enough of the grandparents.
func (m *Merge) border(key []byte) error {
	for m.passed < len(m.Grandparents) && m.Grandparents[m.passed].EndsBefore(key) {
		m.overlaps += m.Grandparents[m.passed].Size
		m.passed++
	}
	far := m.GrandparentBytes > 0 && m.overlaps > m.GrandparentBytes
	if m.out == nil || !far && m.out.EstimatedBytes() < m.TargetBytes {
		return nil
	}
	return m.finish(bytes.Clone(key), nil)
}

// everything sees every committed sequence and every private one.
var everything = base.Visibility{Snapshot: base.MaxSeq, PrivateLimit: 1<<64 - 1}

// version is a row of the current key.
type version struct {
	seq   uint64
	hides uint64 // a sequence that hides it, if that is greater: the oldest one, as far as is known
}

// keep writes the current row, which somebody can see. A delete at the bottom, below which there is nothing, waits
// until there is something of its key that it hides.
func (m *Merge) keep(key []byte, v version, kind base.Kind) error {
	if m.Bottom && kind == base.KindDelete {
		m.deletes = append(m.deletes, v)
		return nil
	}
	for _, d := range m.deletes {
		if err := m.add(key, d, base.KindDelete, nil); err != nil {
			return err
		}
	}
	m.deletes = m.deletes[:0]
	value, err := m.Rows.Value()
	if err != nil {
		return err
	}
	return m.add(key, v, kind, value)
}

// add writes a row.
func (m *Merge) add(key []byte, v version, kind base.Kind, value []byte) error {
	if err := m.open(); err != nil {
		return err
	}
	seq, hides := v.seq, v.hides
	m.unchecked += len(key) + len(value)
	if hides > seq {
		// A snapshot tells the two apart, else it would not be kept.
		first, last := m.Snapshots[m.Snapshots.Of(seq)], m.Snapshots[m.Snapshots.Of(hides)-1]
		m.left.Keep(Kept{first, last, int64(len(key) + len(value))})
	}
	if m.Bottom && kind == base.KindPut && hides <= seq && m.Snapshots.Of(seq) == 0 {
		// Every reader sees it, and nothing of its key is older or lies above an older
		// range tombstone (E1): which sequence it had no longer matters.
		seq = 0
	}
	return m.out.Add(key, seq, kind, value)
}

func (m *Merge) open() (err error) {
	if m.out == nil {
		m.out, err = m.Create()
	}
	return err
}

// finish ends the table being written at key high, which the next one begins
// with; nil: there is nothing from there on. It calls read, if not nil, when nothing of the inputs is
// needed any more.
func (m *Merge) finish(high []byte, read func()) error {
	m.overlaps = 0
	kept := m.Tombstones.Clip(m.low, high).Retain(m.Snapshots, m.Bottom)
	m.low = high
	for _, ts := range kept.Spans() {
		if err := m.open(); err != nil {
			return err
		}
		if err := m.out.AddRangeDelete(ts.Low, ts.High, ts.Seq); err != nil {
			return err
		}
	}
	if read != nil {
		if m.out != nil {
			if err := m.out.WriteOut(); err != nil {
				return err
			}
		}
		read()
	}
	if m.out == nil {
		return nil
	}
	meta, err := m.out.Finish()
	if err != nil {
		return err
	}
	m.out = nil
	m.metas = append(m.metas, meta)
	m.lefts = append(m.lefts, m.left)
	m.left = Leftover{}
	return nil
}
