package cairn_test

import (
	"fmt"
	"testing"

	"github.com/cairndb/cairn"
)

// TestIteratorOverAFailingCommit: an iterator that goes backward stands on a key while a
// commit to that key is on its way, and that commit fails. What the iterator sees does not
// change: the records that are taken back were never a part of it. They were once counted in
// the steps to the row's value where each memtable is walked by itself, for want of memory for
// the order of all.
func TestIteratorOverAFailingCommit(t *testing.T) {
	for _, records := range []int{1000, 1007, 7000} { // of the last there is no order; in that of 1007 the commit stands where one that is not to be seen is shown
		for _, valueBefore := range []bool{false, true} {
			t.Run(fmt.Sprintf("records=%d/valueBefore=%v", records, valueBefore), func(t *testing.T) {
				fs := newGatedFS("never")
				db := openAt(t, "/db", &cairn.Options{FS: fs, Memory: 2 << 20})
				t.Cleanup(fs.log.open)
				b := cairn.NewBatch()
				for i := range records {
					if b.Put(fmt.Appendf(nil, "a%05d", i), []byte("many")); b.Len() == 500 {
						check(t, db.Write(b))
						b.Reset()
					}
				}
				for _, key := range []string{"l", "m", "n"} {
					check(t, db.Put([]byte(key), []byte("old "+key)))
				}
				fs.log.armed.Store(true)
				failed := make(chan error, 1)
				go func() { failed <- db.Put([]byte("m"), []byte("never")) }()
				<-fs.log.hit
				check(t, db.View(func(tx *cairn.Tx) error {
					return overFailing(tx, valueBefore, func() error { fs.log.open(); return <-failed })
				}))
			})
		}
	}
}

// overFailing goes back from n over m to l; when it stands on m the commit fails.
func overFailing(tx *cairn.Tx, valueBefore bool, fail func() error) error {
	it := tx.Iter(cairn.Range{})
	defer it.Close()
	stands := func(moved bool, want string) error {
		if v, err := it.Value(); !moved || string(it.Key()) != want || string(v) != "old "+want {
			return fmt.Errorf("%v: on %q with %q, %v; want %q", moved, it.Key(), v, err, want)
		}
		return nil
	}
	moved := it.SeekLT([]byte("n"))
	if valueBefore {
		if err := stands(moved, "m"); err != nil {
			return err
		}
	}
	if err := fail(); err == nil {
		return fmt.Errorf("the commit did not fail")
	}
	if !valueBefore {
		if err := stands(moved, "m"); err != nil {
			return err
		}
	}
	return stands(it.Prev(), "l")
}
