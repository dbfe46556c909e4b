package histories

import (
	"fmt"
	"slices"
)

// model is the state of all cells: the number of the write that set each, 0 if it
// is absent.
type model []uint32

// replay applies transactions, which it sorts, and returns the first difference
// between what one saw and what it should have.
func (m model) replay(done []*transaction) error {
	slices.SortStableFunc(done, func(a, b *transaction) int {
		switch {
		case a.seq != b.seq:
			return cmp(a.seq, b.seq)
		case a.wrote != b.wrote: // a snapshot sees the commit of its sequence
			return map[bool]int{true: -1, false: 1}[a.wrote]
		}
		return 0
	})
	for i, t := range done {
		for j := range t.ops {
			if err := m.apply(&t.ops[j]); err != nil {
				return fmt.Errorf("transaction %d at sequence %d, operation %d of %d: %w", i, t.seq, j, len(t.ops), err)
			}
		}
	}
	return nil
}

func cmp(a, b uint64) int {
	if a < b {
		return -1
	}
	return 1
}

func (m model) apply(o *op) error {
	switch o.kind {
	case opGet:
		return o.expect(m[o.a] == o.value, m[o.a])
	case opHas:
		return o.expect((m[o.a] != 0) == (o.value == 1), m[o.a])
	case opScan, opScanBackward:
		want := m.scan(o)
		return o.expect(slices.Equal(want, o.rows), want)
	case opSeek:
		want := m.scan(&op{kind: opScan, a: o.a, b: int32(len(m)), limit: 1})
		return o.expect(slices.Equal(want, o.rows), want)
	case opPut:
		m[o.a] = o.value
	case opDelete:
		m[o.a] = 0
	case opDeleteRange:
		clear(m[o.a:max(o.a, o.b)])
	case opPutIfAbsent:
		return m.conditional(o, m[o.a] == 0)
	case opSwap:
		return m.conditional(o, m[o.a] == o.old && o.old != 0)
	}
	return nil
}

// conditional applies a conditional write, whose outcome must be should.
func (m model) conditional(o *op, should bool) error {
	if err := o.expect((o.value != 0) == should, m[o.a]); err != nil || !should {
		return err
	}
	m[o.a] = o.value
	return nil
}

func (m model) scan(o *op) (rows []row) {
	at, step := o.a, int32(1)
	if o.kind == opScanBackward {
		at, step = o.b-1, -1
	}
	for ; at >= o.a && at < o.b && at < int32(len(m)); at += step {
		if m[at] == 0 {
			continue
		}
		if rows = append(rows, row{at, m[at]}); int32(len(rows)) == o.limit {
			break
		}
	}
	return rows
}

func (o *op) expect(ok bool, want any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s of cells %d..%d (limit %d) saw %d %v; in the order of commits it is %v",
		opNames[o.kind], o.a, o.b, o.limit, o.value, o.rows, want)
}
