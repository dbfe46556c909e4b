package histories

import "math/rand/v2"

var shapes = []func(*transaction, *rand.Rand) error{
	(*transaction).skew, (*transaction).skew,
	(*transaction).phantom, (*transaction).phantom,
	(*transaction).modify,
	(*transaction).clearRange,
	(*transaction).successor,
	(*transaction).blind,
	(*transaction).conditionally,
	(*transaction).mixed,
	(*transaction).onlyRead,
}

func (t *transaction) cell(r *rand.Rand) int32 { return int32(r.IntN(t.db.Cells)) }

func (t *transaction) pad(r *rand.Rand) int {
	if t.db.Pad == 0 {
		return 0
	}
	return r.IntN(t.db.Pad)
}

// interval returns a short range of cells.
func (t *transaction) interval(r *rand.Rand) (a, b int32) {
	a = t.cell(r)
	return a, min(a+1+int32(r.IntN(8)), int32(t.db.Cells))
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// skew reads a pair and writes one of it: two of these with different halves are
// the textbook's write skew.
func (t *transaction) skew(r *rand.Rand) error {
	x := t.cell(r) &^ 1
	y := min(x+1, int32(t.db.Cells)-1)
	_, err1 := t.get(x)
	_, err2 := t.get(y)
	t.pause(r)
	target := x
	if r.IntN(2) == 0 {
		target = y
	}
	return first(err1, err2, t.put(target, t.pad(r)))
}

// phantom counts a range and puts a new cell into it, or clears one.
func (t *transaction) phantom(r *rand.Rand) error {
	a, b := t.interval(r)
	rows, err := t.scan(a, b, 1<<30, r.IntN(2) == 0)
	t.pause(r)
	target := a + int32(r.IntN(int(b-a)))
	if len(rows) > int(b-a)/2 {
		return first(err, t.delete(target))
	}
	return first(err, t.put(target, t.pad(r)))
}

// modify reads and writes a few cells, and reads its own writes.
func (t *transaction) modify(r *rand.Rand) error {
	for range 1 + r.IntN(3) {
		c := t.cell(r)
		_, err1 := t.get(c)
		t.pause(r)
		err2 := t.put(c, t.pad(r))
		_, err3 := t.get(c)
		if err := first(err1, err2, err3); err != nil {
			return err
		}
	}
	return nil
}

// clearRange looks at a few rows of a range and deletes another range.
func (t *transaction) clearRange(r *rand.Rand) error {
	a, b := t.interval(r)
	_, err1 := t.scan(a, b, int32(1+r.IntN(3)), r.IntN(2) == 0)
	t.pause(r)
	c, d := t.interval(r)
	err2 := t.deleteRange(c, d)
	_, err3 := t.scan(c, d, 1<<30, false)
	return first(err1, err2, err3)
}

// successor finds the cell behind one, however far, and writes there.
func (t *transaction) successor(r *rand.Rand) error {
	next, ok, err := t.seek(t.cell(r))
	t.pause(r)
	if err != nil || !ok {
		return first(err, t.put(t.cell(r), t.pad(r)))
	}
	return t.put(next.cell, t.pad(r))
}

// blind writes without having read; it must never meet a conflict.
func (t *transaction) blind(r *rand.Rand) error {
	for range 1 + r.IntN(4) {
		if err := t.put(t.cell(r), t.pad(r)); err != nil {
			return err
		}
	}
	return nil
}

// conditionally writes if something holds.
func (t *transaction) conditionally(r *rand.Rand) error {
	c := t.cell(r)
	if r.IntN(2) == 0 {
		return t.putIfAbsent(c)
	}
	old, err := t.get(c)
	if err != nil || old == 0 || t.db.Pad > 0 {
		return err
	}
	t.pause(r)
	return t.swap(c, old)
}

// mixed does anything in any order.
func (t *transaction) mixed(r *rand.Rand) (err error) {
	for n := 1 + r.IntN(8); n > 0 && err == nil; n-- {
		a, b := t.interval(r)
		switch r.IntN(7) {
		case 0, 1:
			_, err = t.get(a)
		case 2:
			_, err = t.has(a)
		case 3:
			_, err = t.scan(a, b, int32(1+r.IntN(9)), r.IntN(2) == 0)
		case 4, 5:
			err = t.put(a, t.pad(r))
		case 6:
			err = t.delete(a)
		}
		t.pause(r)
	}
	return err
}

// onlyRead reads much, slowly.
func (t *transaction) onlyRead(r *rand.Rand) error {
	a, b := t.interval(r)
	_, err1 := t.get(a)
	_, err2 := t.scan(a, b, 1<<30, false)
	t.pause(r)
	_, err3 := t.scan(0, int32(t.db.Cells), 1<<30, r.IntN(2) == 0)
	_, err4 := t.get(b - 1)
	return first(err1, err2, err3, err4)
}

// large writes more than the store holds in memory for one transaction.
func (t *transaction) large(r *rand.Rand) error {
	a, b := t.interval(r)
	if _, err := t.scan(a, b, 1<<30, false); err != nil {
		return err
	}
	for n := 0; n < t.db.LargeBytes; {
		pad := 200 + r.IntN(2000)
		n += pad
		err := t.put(t.cell(r), pad)
		switch r.IntN(20) {
		case 0:
			c, d := t.interval(r)
			err = first(err, t.deleteRange(c, d))
		case 1:
			_, err2 := t.scan(a, int32(t.db.Cells), 5, r.IntN(2) == 0)
			err = first(err, err2)
		case 2:
			_, err2 := t.get(t.cell(r))
			err = first(err, err2)
		case 3:
			err = first(err, t.delete(t.cell(r)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
