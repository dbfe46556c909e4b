package histories

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cairndb/cairn"
)

type opKind uint8

const (
	opGet opKind = iota
	opHas
	opScan
	opScanBackward
	opSeek
	opPut
	opDelete
	opDeleteRange
	opPutIfAbsent
	opSwap
)

var opNames = [...]string{"get", "has", "scan", "scan backward", "seek", "put", "delete", "delete range", "put if absent", "compare and swap"}

// op is one operation of a transaction and what it returned. Cells a..b-1 are the
// range of a scan or range delete; a is the key of everything else.
type op struct {
	kind  opKind
	a, b  int32
	limit int32  // scan: rows after which it stopped
	value uint32 // written, or read; 0: absent
	old   uint32 // compare and swap: what was expected
	rows  []row  // what a scan saw
}

type row struct {
	cell  int32
	value uint32
}

// transaction records one transaction while it runs.
type transaction struct {
	tx    *cairn.Tx
	db    *driver
	ops   []op
	seq   uint64 // of its commit, or of the snapshot if it wrote nothing
	wrote bool
}

var errBroken = errors.New("histories: the store returned what nobody wrote")

func key(cell int32) []byte { return fmt.Appendf(make([]byte, 0, 16), "cell%06d", cell) }

func cellOf(key []byte) int32 {
	n := int32(0)
	for _, c := range key[4:] {
		n = 10*n + int32(c-'0')
	}
	return n
}

// encode makes the value for write number n, padded to a random length.
func (t *transaction) encode(n uint32, pad int) []byte {
	v := make([]byte, 4+pad)
	binary.LittleEndian.PutUint32(v, n)
	for i := 4; i < len(v); i++ {
		v[i] = byte(n)
	}
	return v
}

func decode(v []byte) (uint32, error) {
	if len(v) < 4 {
		return 0, fmt.Errorf("%w: value %x", errBroken, v)
	}
	n := binary.LittleEndian.Uint32(v)
	for _, b := range v[4:] {
		if b != byte(n) {
			return 0, fmt.Errorf("%w: write %d is torn", errBroken, n)
		}
	}
	return n, nil
}

func (t *transaction) get(cell int32) (uint32, error) {
	v, err := t.tx.Get(key(cell))
	n := uint32(0)
	if err == nil {
		n, err = decode(v)
	} else if errors.Is(err, cairn.ErrNotFound) {
		err = nil
	}
	t.ops = append(t.ops, op{kind: opGet, a: cell, value: n})
	return n, err
}

func (t *transaction) has(cell int32) (bool, error) {
	ok, err := t.tx.Has(key(cell))
	n := uint32(0)
	if ok {
		n = 1
	}
	t.ops = append(t.ops, op{kind: opHas, a: cell, value: n})
	return ok, err
}

func span(a, b int32) cairn.Range { return cairn.Range{Low: key(a), High: key(b)} }

// scan walks cells a..b-1 and stops behind limit rows.
func (t *transaction) scan(a, b, limit int32, backward bool) ([]row, error) {
	kind, walk := opScan, t.tx.Scan
	if backward {
		kind, walk = opScanBackward, t.tx.ScanBackward
	}
	var rows []row
	var broken error
	for k, v := range walk(span(a, b)) {
		n, err := decode(v)
		if err != nil {
			broken = err
			break
		}
		if rows = append(rows, row{cellOf(k), n}); int32(len(rows)) == limit {
			break
		}
	}
	t.ops = append(t.ops, op{kind: kind, a: a, b: b, limit: limit, rows: rows})
	return rows, errors.Join(broken, t.tx.Err())
}

// seek finds the first cell >= a by an iterator that stays open until the end.
func (t *transaction) seek(a int32) (row, bool, error) {
	it := t.tx.Iter(cairn.Range{})
	o := op{kind: opSeek, a: a}
	if it.Seek(key(a)) {
		v, err := it.Value()
		if err != nil {
			return row{}, false, err
		}
		n, err := decode(v)
		if err != nil {
			return row{}, false, err
		}
		o.rows = []row{{cellOf(it.Key()), n}}
	}
	t.ops = append(t.ops, o)
	if err := it.Err(); err != nil || o.rows == nil {
		return row{}, false, err
	}
	return o.rows[0], true, nil
}

func (t *transaction) put(cell int32, pad int) error {
	n := t.db.writes.Add(1)
	t.ops = append(t.ops, op{kind: opPut, a: cell, value: n})
	t.wrote = true
	return t.tx.Put(key(cell), t.encode(n, pad))
}

func (t *transaction) delete(cell int32) error {
	t.ops = append(t.ops, op{kind: opDelete, a: cell})
	t.wrote = true
	return t.tx.Delete(key(cell))
}

func (t *transaction) deleteRange(a, b int32) error {
	t.ops = append(t.ops, op{kind: opDeleteRange, a: a, b: b})
	t.wrote = t.wrote || a < b
	return t.tx.DeleteRange(span(a, b))
}

func (t *transaction) putIfAbsent(cell int32) error {
	n := t.db.writes.Add(1)
	done, err := t.tx.PutIfAbsent(key(cell), t.encode(n, 0))
	if !done {
		n = 0
	}
	t.ops = append(t.ops, op{kind: opPutIfAbsent, a: cell, value: n})
	t.wrote = t.wrote || done
	return err
}

// swap replaces the value that is expected to be old, with no padding.
func (t *transaction) swap(cell int32, old uint32) error {
	n := t.db.writes.Add(1)
	done, err := t.tx.CompareAndSwap(key(cell), t.encode(old, 0), t.encode(n, 0))
	if !done {
		n = 0
	}
	t.ops = append(t.ops, op{kind: opSwap, a: cell, value: n, old: old})
	t.wrote = t.wrote || done
	return err
}
