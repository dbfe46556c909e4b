package lifetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cairndb/cairn"
)

// ring is what a store holds whose commit i puts a value to one of so many keys, or deletes it, and
// notes that it was the last; each key has its turn once in that many commits.
type ring struct {
	keys  uint64
	step  uint64                // from a key to the one whose turn is next: 1 or a prime that keys is no multiple of
	value func(i uint64) []byte // what commit i puts, i first
}

func (x ring) key(i uint64) []byte { return fmt.Appendf(nil, "key%06d", i%x.keys*x.step%x.keys) }

// deletes reports whether commit i deletes its key.
func (x ring) deletes(i uint64) bool { return i%17 == 0 }

func (x ring) commit(tx *cairn.Tx, i uint64) (err error) {
	if x.deletes(i) {
		err = tx.Delete(x.key(i))
	} else {
		err = tx.Put(x.key(i), x.value(i))
	}
	return errors.Join(err, tx.Put([]byte("last"), binary.BigEndian.AppendUint64(nil, i)))
}

// resume checks the store that a child has opened, and tells the parent which commit was the last
// ("s i"), or what is wrong ("e"). The child goes on if ok.
func (x ring) resume(db *cairn.DB, err error) (last uint64, ok bool) {
	if err == nil {
		last, err = x.verify(db)
	}
	if err != nil {
		fmt.Println("e", err)
		return 0, false
	}
	fmt.Println("s", last)
	return last, true
}

// verify returns the last commit, having checked that the store holds just what it and all before it
// left.
func (x ring) verify(db *cairn.DB) (last uint64, err error) {
	err = db.View(func(tx *cairn.Tx) error {
		v, err := tx.Get([]byte("last"))
		if errors.Is(err, cairn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		last = binary.BigEndian.Uint64(v)
		left := map[string]uint64{} // the commit that each key has its value from
		for k, v := range tx.Scan(cairn.Prefix([]byte("key"))) {
			i := binary.BigEndian.Uint64(v)
			if !bytes.Equal(v, x.value(i)) || !bytes.Equal(k, x.key(i)) {
				return fmt.Errorf("key %q has not what commit %d put", k, i)
			}
			left[string(k)] = i
		}
		for i := last; i > 0 && last-i < x.keys; i-- {
			from, ok := left[string(x.key(i))]
			if ok == x.deletes(i) || ok && from != i {
				return fmt.Errorf("after commit %d key %q has what %d put, not %d", last, x.key(i), from, i)
			}
			delete(left, string(x.key(i)))
		}
		if len(left) > 0 {
			return fmt.Errorf("after commit %d there are %d keys too many", last, len(left))
		}
		return tx.Err()
	})
	return last, err
}
