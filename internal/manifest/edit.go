package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cairndb/cairn/internal/base"
	"github.com/cairndb/cairn/internal/frame"
)

// Limits of what an edit may name.
const (
	maxFileNum    = 1<<48 - 1
	MaxSegmentNum = 1<<32 - 1 // a position in the log has 32 bits for it
	maxCount      = 1<<62 - 1 // of bytes, rows: so that they fit an int64
)

// Edit is one change of a store's State. The zero Edit changes nothing.
// Removals come before additions.
type Edit struct {
	Added    []Added
	Removed  []Removed
	Segments []Segment // new log segments, in increasing order of number

	// These only grow: a smaller value, zero included, changes nothing.
	LogStart        uint64 // segments with a smaller number are obsolete
	Provisional     uint64 // segments with this number or a greater one were not synced when they were recorded; 0: there are none
	NextFileNum     uint64 // greater than every file number in use
	LastSeq         uint64 // no sequence in the tables is greater
	IngestedThrough uint64 // ingest frames of the log with a sequence <= this are part of the tables; at most LastSeq

	Dropped *Dropped // nil: no change; zero: forget the report

	unknown bool // decoded from bytes with optional fields this build does not know
}

// Adds reports whether the edit adds the table of the given number.
func (e *Edit) Adds(num uint64) bool {
	return slices.ContainsFunc(e.Added, func(a Added) bool { return a.Table.Num == num })
}

// Added is a table put into a level; Run is the id of its run in level 0, not
// zero there, and zero elsewhere.
type Added struct {
	Level int
	Run   uint64
	Table *base.TableMeta
}

// Removed is a table taken out of a level.
type Removed struct {
	Level int
	Num   uint64
}

// Segment is a log segment and the id in its file header.
type Segment struct {
	Num  uint64
	File base.ID
}

// Dropped reports that a recovery dropped the tail of the log.
type Dropped struct {
	Bytes uint64 // up to the last byte that was not zero
	From  uint64 // position: segment number << 32 | offset
}

// More returns the report with more bytes, at most as many as an edit can tell of.
func (d Dropped) More(bytes uint64) Dropped {
	d.Bytes += min(bytes, maxCount-min(d.Bytes, maxCount))
	return d
}

// Empty reports whether the edit changes nothing.
func (e *Edit) Empty() bool { return len(e.Append(nil)) == 0 }

// Tags: an id, and in the lowest bit whether a reader must understand the field.
const (
	tagNextFileNum     = 1<<1 | 1
	tagLastSeq         = 2<<1 | 1
	tagIngestedThrough = 3<<1 | 1
	tagLogStart        = 4<<1 | 1
	tagDropped         = 5<<1 | 1
	tagSegment         = 6<<1 | 1
	tagRemoved         = 7<<1 | 1
	tagAdded           = 8<<1 | 1
	tagProvisional     = 9<<1 | 1
)

const (
	flagExclusive = 1 << 0
	flagGlobalSeq = 1 << 1
	knownFlags    = flagExclusive | flagGlobalSeq
)

// Append appends the encoding of the edit, which the edit determines.
func (e *Edit) Append(dst []byte) []byte {
	dst = appendNumber(dst, tagNextFileNum, e.NextFileNum)
	dst = appendNumber(dst, tagLastSeq, e.LastSeq)
	dst = appendNumber(dst, tagIngestedThrough, e.IngestedThrough)
	dst = appendNumber(dst, tagLogStart, e.LogStart)
	var body []byte
	if e.Dropped != nil {
		body = binary.AppendUvarint(body[:0], e.Dropped.Bytes)
		dst = appendField(dst, tagDropped, binary.AppendUvarint(body, e.Dropped.From))
	}
	for _, s := range e.Segments {
		body = binary.AppendUvarint(body[:0], s.Num)
		dst = appendField(dst, tagSegment, append(body, s.File[:]...))
	}
	for _, r := range e.Removed {
		body = append(body[:0], byte(r.Level))
		dst = appendField(dst, tagRemoved, binary.AppendUvarint(body, r.Num))
	}
	for i := range e.Added {
		body = appendAdded(body[:0], &e.Added[i])
		dst = appendField(dst, tagAdded, body)
	}
	return appendNumber(dst, tagProvisional, e.Provisional)
}

func appendNumber(dst []byte, tag, v uint64) []byte {
	if v == 0 {
		return dst
	}
	var body [binary.MaxVarintLen64]byte
	return appendField(dst, tag, binary.AppendUvarint(body[:0], v))
}

func appendField(dst []byte, tag uint64, body []byte) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// DecodeEdit decodes an edit; keys alias b. An optional field of a later build is
// skipped; one that has to be understood is an error matching
// base.ErrFormatTooNew, anything malformed a *base.CorruptionError.
func DecodeEdit(b []byte) (*Edit, error) {
	e, d, last := new(Edit), decoder{b: b}, uint64(0)
	for len(d.b) > 0 {
		tag := d.uvarint(1<<64 - 1)
		body := decoder{b: d.bytes(d.uvarint(uint64(len(d.b))))}
		if tag < last || tag == last && !repeated(tag) {
			d.fail("field %d is out of order or repeated", tag)
		}
		last = tag
		if d.err != nil {
			return nil, d.err
		}
		if err := e.decodeField(tag, &body); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// DecodeIngest returns the tables that an ingest frame of the log adds, which do not alias the payload: runs of level 0, each
// with the next sequence, from that of the frame on, as global one. What says anything else is a *base.CorruptionError that
// names the file and the offset given.
func DecodeIngest(h frame.Header, payload []byte, file string, offset int64) ([]Added, error) {
	e, err := DecodeEdit(bytes.Clone(payload))
	if err == nil {
		err = e.checkIngest(h, payload)
	}
	switch {
	case errors.Is(err, base.ErrCorrupt):
		return nil, base.Locate(err, file, offset)
	case err != nil:
		return nil, fmt.Errorf("%s at offset %d: ingest: %w", file, offset, err)
	}
	return e.Added, nil
}

func (e *Edit) checkIngest(h frame.Header, payload []byte) error {
	if e.unknown {
		return fmt.Errorf("%w: an ingest has fields unknown to this build", base.ErrFormatTooNew)
	}
	if only := (&Edit{Added: e.Added}); len(e.Added) == 0 || !bytes.Equal(only.Append(nil), payload) {
		return badEdit("an ingest does not add tables, or does something else")
	}
	if _, err := new(Version).Apply(e); err != nil {
		return err
	}
	next, before := h.Seq, (*base.TableMeta)(nil)
	for _, a := range e.Added {
		t := a.Table
		if a.Level != 0 || a.Run != t.GlobalSeq || t.GlobalSeq != next && (before == nil || t.GlobalSeq != before.GlobalSeq) {
			return badEdit("an ingest adds table %d to level %d, run %d, with sequence %d", t.Num, a.Level, a.Run, t.GlobalSeq)
		}
		if t.GlobalSeq == next {
			next++
		} else if bytes.Compare(before.Smallest, t.Smallest) >= 0 {
			return badEdit("an ingest adds table %d behind table %d, which has greater keys", t.Num, before.Num)
		}
		before = t
	}
	if next-h.Seq != uint64(h.Count) {
		return badEdit("an ingest of %d runs says it has %d", next-h.Seq, h.Count)
	}
	return nil
}

func repeated(tag uint64) bool {
	return tag == tagSegment || tag == tagRemoved || tag == tagAdded || tag > tagProvisional
}

func (e *Edit) decodeField(tag uint64, d *decoder) error {
	switch tag {
	case tagNextFileNum:
		e.NextFileNum = d.positive(maxFileNum + 1)
	case tagLastSeq:
		e.LastSeq = d.positive(base.MaxSeq)
	case tagIngestedThrough:
		e.IngestedThrough = d.positive(base.MaxSeq)
	case tagLogStart:
		e.LogStart = d.positive(MaxSegmentNum + 1)
	case tagDropped:
		e.Dropped = &Dropped{Bytes: d.uvarint(maxCount), From: d.uvarint(1<<64 - 1)}
	case tagSegment:
		e.Segments = append(e.Segments, Segment{Num: d.uvarint(MaxSegmentNum), File: d.id()})
	case tagRemoved:
		e.Removed = append(e.Removed, Removed{Level: d.level(), Num: d.uvarint(maxFileNum)})
	case tagAdded:
		e.Added = append(e.Added, decodeAdded(d))
	case tagProvisional:
		e.Provisional = d.positive(MaxSegmentNum + 1)
	default:
		if tag&1 == 1 {
			return fmt.Errorf("%w: manifest field %d", base.ErrFormatTooNew, tag)
		}
		e.unknown = true
		return d.err
	}
	return d.end(tag)
}

func appendAdded(dst []byte, a *Added) []byte {
	t, flags := a.Table, byte(0)
	if t.LargestExclusive {
		flags |= flagExclusive
	}
	if t.GlobalSeq != 0 {
		flags |= flagGlobalSeq
	}
	dst = append(dst, byte(a.Level))
	if a.Level == 0 {
		dst = binary.AppendUvarint(dst, a.Run)
	}
	dst = binary.AppendUvarint(dst, t.Num)
	dst = append(append(dst, t.File[:]...), flags)
	for _, v := range []uint64{uint64(t.Size), t.MinSeq, t.MaxSeq - t.MinSeq, t.Entries, t.Deletes, t.RangeDeletes, uint64(t.RawBytes)} {
		dst = binary.AppendUvarint(dst, v)
	}
	for _, key := range [][]byte{t.Smallest, t.Largest} {
		dst = append(binary.AppendUvarint(dst, uint64(len(key))), key...)
	}
	return dst
}

func decodeAdded(d *decoder) Added {
	a, t := Added{Level: d.level()}, new(base.TableMeta)
	a.Table = t
	if a.Level == 0 {
		a.Run = d.positive(1<<64 - 1)
	}
	t.Num, t.File = d.uvarint(maxFileNum), d.id()
	flags := d.byte()
	t.LargestExclusive = flags&flagExclusive != 0
	t.Size = int64(d.uvarint(maxCount))
	t.MinSeq = d.uvarint(base.MaxSeq)
	t.MaxSeq = t.MinSeq + d.uvarint(base.MaxSeq)
	t.Entries, t.Deletes, t.RangeDeletes = d.uvarint(maxCount), d.uvarint(maxCount), d.uvarint(maxCount)
	t.RawBytes = int64(d.uvarint(maxCount))
	t.Smallest = d.bytes(d.uvarint(uint64(len(d.b))))
	t.Largest = d.bytes(d.uvarint(uint64(len(d.b))))
	if flags&flagGlobalSeq != 0 {
		t.GlobalSeq = t.MinSeq
	}
	if flags&^knownFlags != 0 || flags&flagGlobalSeq != 0 && t.GlobalSeq == 0 {
		d.fail("flags %#x of table %d", flags, t.Num)
	}
	return a
}

// check reports what makes the added table impossible.
func (a *Added) check() error {
	t := a.Table
	order := bytes.Compare(t.Smallest, t.Largest)
	switch {
	case a.Level < 0 || a.Level >= NumLevels || (a.Level == 0) != (a.Run != 0):
		return badEdit("table %d at level %d in run %d", t.Num, a.Level, a.Run)
	case t.Num > maxFileNum || t.Size <= 0 || t.RawBytes < 0:
		return badEdit("table %d has size %d, %d bytes raw", t.Num, t.Size, t.RawBytes)
	case len(t.Smallest) == 0 || order > 0 || order == 0 && t.LargestExclusive:
		return badEdit("table %d has bounds %q, %q (exclusive %t)", t.Num, t.Smallest, t.Largest, t.LargestExclusive)
	case t.MinSeq > t.MaxSeq || t.MaxSeq > base.MaxSeq:
		return badEdit("table %d has sequences %d to %d", t.Num, t.MinSeq, t.MaxSeq)
	case t.GlobalSeq != 0 && (t.MinSeq != t.GlobalSeq || t.MaxSeq != t.GlobalSeq):
		return badEdit("table %d has global sequence %d but sequences %d to %d", t.Num, t.GlobalSeq, t.MinSeq, t.MaxSeq)
	case t.Deletes > t.Entries || t.Entries > maxCount || t.RangeDeletes > maxCount || t.Entries+t.RangeDeletes == 0:
		return badEdit("table %d has %d rows, %d deletes, %d range deletes", t.Num, t.Entries, t.Deletes, t.RangeDeletes)
	}
	return nil
}
