package histories

import "testing"

func get(cell int32, value uint32) op { return op{kind: opGet, a: cell, value: value} }
func put(cell int32, value uint32) op { return op{kind: opPut, a: cell, value: value} }

func committed(seq uint64, ops ...op) *transaction {
	return &transaction{seq: seq, wrote: true, ops: ops}
}

func snapshot(seq uint64, ops ...op) *transaction { return &transaction{seq: seq, ops: ops} }

// TestHandMadeHistories: the checker accepts what is serial and finds each anomaly.
func TestHandMadeHistories(t *testing.T) {
	setup := committed(2, put(0, 1), put(1, 2))
	scan := func(rows ...row) op { return op{kind: opScan, a: 0, b: 4, limit: 9, rows: rows} }
	both := scan(row{0, 1}, row{1, 2})
	for name, c := range map[string]struct {
		history []*transaction
		good    bool
	}{
		"serial":         {[]*transaction{setup, committed(3, get(0, 1), put(0, 3)), committed(4, get(0, 3), put(1, 4))}, true},
		"any order":      {[]*transaction{committed(4, get(0, 3), put(1, 4)), setup, committed(3, get(0, 1), put(0, 3))}, true},
		"own writes":     {[]*transaction{committed(1, get(0, 0), put(0, 1), get(0, 1), op{kind: opDelete, a: 0}, get(0, 0))}, true},
		"old snapshot":   {[]*transaction{setup, committed(3, put(0, 3)), snapshot(2, get(0, 1), both)}, true},
		"lost update":    {[]*transaction{setup, committed(3, get(0, 1), put(0, 3)), committed(4, get(0, 1), put(0, 4))}, false},
		"write skew":     {[]*transaction{setup, committed(3, get(0, 1), get(1, 2), put(0, 3)), committed(4, get(0, 1), get(1, 2), put(1, 4))}, false},
		"phantom":        {[]*transaction{setup, committed(3, both, put(2, 3)), committed(4, both, put(3, 4))}, false},
		"dirty read":     {[]*transaction{setup, snapshot(2, get(0, 77))}, false},
		"torn snapshot":  {[]*transaction{setup, committed(4, put(0, 3), put(1, 4)), snapshot(4, get(0, 3), get(1, 2))}, false},
		"stale snapshot": {[]*transaction{setup, committed(3, put(0, 3)), snapshot(3, get(0, 1))}, false},
		"deleted row":    {[]*transaction{setup, committed(3, op{kind: opDeleteRange, a: 0, b: 1}), snapshot(3, both)}, false},
		"wrong swap":     {[]*transaction{setup, committed(3, op{kind: opSwap, a: 0, old: 2, value: 3})}, false},
		"missed swap":    {[]*transaction{setup, committed(3, op{kind: opSwap, a: 0, old: 1, value: 0})}, false},
		"put if present": {[]*transaction{setup, committed(3, op{kind: opPutIfAbsent, a: 0, value: 3})}, false},
		"short backward": {[]*transaction{setup, snapshot(2, op{kind: opScanBackward, a: 0, b: 4, limit: 1, rows: []row{{0, 1}}})}, false},
	} {
		if err := make(model, 4).replay(c.history); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
