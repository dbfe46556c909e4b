package cairn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Example is the one of the README; internal/lint compares the two.
func Example() {
	dir, _ := os.MkdirTemp("", "cairn-example")
	defer os.RemoveAll(dir)

	// README: from here
	db, err := cairn.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *cairn.Tx) error {
		return errors.Join(tx.Put([]byte("fruit/apple"), []byte("green")), tx.Put([]byte("fruit/cherry"), []byte("red")))
	})
	if err != nil {
		log.Fatal(err)
	}
	err = db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Prefix([]byte("fruit/"))) {
			fmt.Printf("%s is %s\n", k, v)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// README: to here

	// Output:
	// fruit/apple is green
	// fruit/cherry is red
}

// must is for the examples below, which are about something else than errors.
func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// openExample opens an empty store in memory.
func openExample() *cairn.DB {
	db, err := cairn.Open("/db", &cairn.Options{FS: memfs.New()})
	must(err)
	return db
}

// openFruit opens a store with a little in it.
func openFruit() *cairn.DB {
	db := openExample()
	b := cairn.NewBatch()
	for _, f := range []string{"apple green", "banana yellow", "cherry red", "plum blue"} {
		var name, color string
		fmt.Sscan(f, &name, &color)
		b.Put([]byte("fruit/"+name), []byte(color))
	}
	b.Put([]byte("tree/oak"), []byte("brown"))
	must(db.Write(b))
	return db
}

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "cairn-example")
	defer os.RemoveAll(dir)

	db, err := cairn.Open(dir, &cairn.Options{
		Durability:   cairn.Relaxed, // survive a crash of the process, not always of the machine
		SyncInterval: 100 * time.Millisecond,
		Memory:       64 << 20,
	})
	must(err)
	defer db.Close()

	_, err = cairn.Open(dir, nil) // one at a time
	var locked *cairn.LockedError
	fmt.Println(errors.As(err, &locked), locked.PID == os.Getpid())
	// Output: true true
}

func ExampleOptions_readOnly() {
	dir, _ := os.MkdirTemp("", "cairn-example")
	defer os.RemoveAll(dir)
	db, err := cairn.Open(dir, nil)
	must(err)
	must(db.Put([]byte("k"), []byte("v")))
	must(db.Close())

	db, err = cairn.Open(dir, &cairn.Options{ReadOnly: true})
	must(err)
	defer db.Close()
	v, err := db.Get([]byte("k"))
	fmt.Printf("%s %v; %v\n", v, err, db.Put([]byte("k"), nil))
	// Output: v <nil>; cairn: read-only
}

func ExampleDB_Close() {
	db := openExample()
	fmt.Println(db.Close())
	fmt.Println(db.Close()) // nothing is left to do
	_, err := db.Get([]byte("k"))
	fmt.Println(errors.Is(err, cairn.ErrClosed))
	// Output:
	// <nil>
	// <nil>
	// true
}

func ExampleDB_Get() {
	db := openFruit()
	defer db.Close()

	color, err := db.Get([]byte("fruit/plum"))
	fmt.Printf("%s %v\n", color, err)
	_, err = db.Get([]byte("fruit/pear"))
	fmt.Println(errors.Is(err, cairn.ErrNotFound))
	// Output:
	// blue <nil>
	// true
}

func ExampleDB_GetTo() {
	db := openFruit()
	defer db.Close()

	buf := make([]byte, 0, 64) // used again and again
	for _, name := range []string{"apple", "cherry"} {
		var err error
		buf, err = db.GetTo([]byte("fruit/"+name), buf)
		must(err)
		fmt.Printf("%s\n", buf)
	}
	// Output:
	// green
	// red
}

func ExampleDB_Has() {
	db := openFruit()
	defer db.Close()

	fmt.Println(db.Has([]byte("fruit/plum")))
	fmt.Println(db.Has([]byte("fruit/pear")))
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleDB_Put() {
	db := openExample()
	defer db.Close()

	must(db.Put([]byte("k"), []byte("first")))
	must(db.Put([]byte("k"), []byte("second")))
	v, err := db.Get([]byte("k"))
	fmt.Printf("%s %v\n", v, err)
	fmt.Println(db.Put(nil, []byte("v")))
	// Output:
	// second <nil>
	// cairn: empty key
}

func ExampleDB_Delete() {
	db := openFruit()
	defer db.Close()

	must(db.Delete([]byte("fruit/plum")))
	must(db.Delete([]byte("fruit/plum"))) // it is gone already, which is fine
	fmt.Println(db.Has([]byte("fruit/plum")))
	// Output: false <nil>
}

func ExampleDB_Write() {
	db := openFruit()
	defer db.Close()

	b := cairn.NewBatch()
	b.Put([]byte("fruit/plum"), []byte("purple"))
	b.Delete([]byte("fruit/apple"))
	b.DeleteRange(cairn.Prefix([]byte("tree/")))
	must(db.Write(b)) // all of it, or nothing

	must(db.View(func(tx *cairn.Tx) error {
		for k, v := range tx.Scan(cairn.Range{}) {
			fmt.Printf("%s=%s\n", k, v)
		}
		return nil
	}))
	// Output:
	// fruit/banana=yellow
	// fruit/cherry=red
	// fruit/plum=purple
}

func ExampleBatch() {
	db := openExample()
	defer db.Close()

	b := cairn.NewBatch()
	for i := range 3 {
		b.Put(fmt.Appendf(nil, "key%d", i), []byte("v"))
	}
	fmt.Println(b.Len(), db.Write(b))
	b.Reset() // and use it again
	b.Put(nil, []byte("an empty key is an error, which Write returns"))
	fmt.Println(b.Len(), db.Write(b))
	// Output:
	// 3 <nil>
	// 0 write 1 of the batch: cairn: empty key
}

func ExampleDB_View() {
	db := openFruit()
	defer db.Close()

	err := db.View(func(tx *cairn.Tx) error {
		before, err := tx.Get([]byte("fruit/apple"))
		if err != nil {
			return err
		}
		must(db.Put([]byte("fruit/apple"), []byte("red"))) // by somebody else
		after, err := tx.Get([]byte("fruit/apple"))
		fmt.Printf("%s %s\n", before, after) // a snapshot stays as it is
		return err
	})
	fmt.Println(err)
	// Output:
	// green green
	// <nil>
}

func ExampleDB_Update() {
	db := openExample()
	defer db.Close()
	must(db.Put([]byte("alice"), []byte{70}))
	must(db.Put([]byte("bob"), []byte{10}))

	pay := func(from, to string, amount byte) error {
		return db.Update(func(tx *cairn.Tx) error { // may run more than once
			a, err := tx.Get([]byte(from))
			if err != nil {
				return err
			}
			b, err := tx.Get([]byte(to))
			if err != nil {
				return err
			}
			if a[0] < amount {
				return errors.New("too little money")
			}
			if err := tx.Put([]byte(from), []byte{a[0] - amount}); err != nil {
				return err
			}
			return tx.Put([]byte(to), []byte{b[0] + amount})
		})
	}
	fmt.Println(pay("alice", "bob", 50))
	fmt.Println(pay("alice", "bob", 50)) // nothing of it is written
	a, _ := db.Get([]byte("alice"))
	b, _ := db.Get([]byte("bob"))
	fmt.Println(a, b)
	// Output:
	// <nil>
	// too little money
	// [20] [60]
}

func ExampleDB_Begin() {
	db := openFruit()
	defer db.Close()

	tx, err := db.Begin(true)
	must(err)
	defer tx.Rollback() // does nothing after Commit

	_, err = tx.Get([]byte("fruit/apple"))
	must(err)
	must(tx.Put([]byte("seen"), []byte("green apple")))
	must(db.Put([]byte("fruit/apple"), []byte("red"))) // somebody is quicker

	err = tx.Commit()
	var conflict *cairn.ConflictError
	fmt.Println(errors.As(err, &conflict), string(conflict.Low))
	fmt.Println(db.Has([]byte("seen")))
	// Output:
	// true fruit/apple
	// false <nil>
}

func ExampleTx_Commit() {
	db := openExample()
	defer db.Close()

	tx, err := db.Begin(true)
	must(err)
	must(tx.Put([]byte("k"), []byte("v")))
	fmt.Println(tx.Commit(), tx.CommitSeq())
	fmt.Println(tx.Commit())
	// Output:
	// <nil> 1
	// cairn: transaction or iterator is closed
}

func ExampleTx_Rollback() {
	db := openExample()
	defer db.Close()

	tx, err := db.Begin(true)
	must(err)
	must(tx.Put([]byte("k"), []byte("v")))
	fmt.Println(tx.Rollback())
	fmt.Println(db.Has([]byte("k")))
	// Output:
	// <nil>
	// false <nil>
}

func ExampleTx_Get() {
	db := openFruit()
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error {
		must(tx.Put([]byte("fruit/plum"), []byte("purple")))
		color, err := tx.Get([]byte("fruit/plum")) // a transaction sees its own writes
		fmt.Printf("%s\n", color)                  // and color lasts until it ends
		return err
	}))
	// Output: purple
}

func ExampleTx_Has() {
	db := openFruit()
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error {
		must(tx.Delete([]byte("fruit/plum")))
		fmt.Println(tx.Has([]byte("fruit/plum")))
		return nil
	}))
	// Output: false <nil>
}

func ExampleTx_Put() {
	db := openExample()
	defer db.Close()

	key := []byte("k1")
	must(db.Update(func(tx *cairn.Tx) error {
		must(tx.Put(key, []byte("one")))
		key[1] = '2' // slices passed in may be reused
		return tx.Put(key, []byte("two"))
	}))
	one, _ := db.Get([]byte("k1"))
	fmt.Printf("%s\n", one)
	// Output: one
}

func ExampleTx_PutIfAbsent() {
	db := openExample()
	defer db.Close()

	for _, who := range []string{"alice", "bob"} {
		must(db.Update(func(tx *cairn.Tx) error {
			done, err := tx.PutIfAbsent([]byte("leader"), []byte(who))
			fmt.Println(who, done)
			return err
		}))
	}
	// Output:
	// alice true
	// bob false
}

func ExampleTx_CompareAndSwap() {
	db := openExample()
	defer db.Close()
	must(db.Put([]byte("state"), []byte("idle")))

	must(db.Update(func(tx *cairn.Tx) error {
		done, err := tx.CompareAndSwap([]byte("state"), []byte("idle"), []byte("busy"))
		fmt.Println(done, err)
		done, err = tx.CompareAndSwap([]byte("state"), []byte("idle"), []byte("busy"))
		fmt.Println(done, err)
		return nil
	}))
	// Output:
	// true <nil>
	// false <nil>
}

func ExampleTx_Delete() {
	db := openFruit()
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error { return tx.Delete([]byte("tree/oak")) }))
	fmt.Println(db.Has([]byte("tree/oak")))
	// Output: false <nil>
}

func ExampleTx_DeleteRange() {
	db := openFruit()
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error {
		return tx.DeleteRange(cairn.Prefix([]byte("fruit/"))) // however many there are
	}))
	must(db.View(func(tx *cairn.Tx) error {
		for k := range tx.Keys(cairn.Range{}) {
			fmt.Printf("%s\n", k)
		}
		return nil
	}))
	// Output: tree/oak
}

func ExampleTx_Keys() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		n := 0
		for range tx.Keys(cairn.Prefix([]byte("fruit/"))) { // no value is read
			n++
		}
		fmt.Println(n)
		return nil
	}))
	// Output: 4
}

func ExampleTx_Scan() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		r := cairn.Range{Low: []byte("fruit/b"), High: []byte("fruit/d")}
		for k, v := range tx.Scan(r) { // k and v last until the next step
			fmt.Printf("%s is %s\n", k, v)
		}
		return tx.Err() // View returns it anyway
	}))
	// Output:
	// fruit/banana is yellow
	// fruit/cherry is red
}

func ExampleTx_ScanBackward() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		for k := range tx.ScanBackward(cairn.Prefix([]byte("fruit/"))) {
			fmt.Printf("%s\n", k)
			break // the last one only
		}
		return nil
	}))
	// Output: fruit/plum
}

func ExampleTx_Iter() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		it := tx.Iter(cairn.Range{})
		defer it.Close()
		for ok := it.Seek([]byte("fruit/c")); ok; ok = it.Next() {
			fmt.Printf("%s\n", it.Key())
		}
		return it.Err()
	}))
	// Output:
	// fruit/cherry
	// fruit/plum
	// tree/oak
}

func ExampleTx_Err() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		for range tx.Scan(cairn.Range{}) {
		}
		fmt.Println(tx.Err()) // the scan was complete
		return nil
	}))
	// Output: <nil>
}

func ExampleTx_Seq() {
	db := openFruit()
	defer db.Close()

	tx, err := db.Begin(true)
	must(err)
	must(tx.Put([]byte("a"), nil))
	must(tx.Put([]byte("b"), nil))
	seq := tx.Seq()
	must(tx.Commit())
	fmt.Println(tx.CommitSeq() - seq) // two writes
	// Output: 2
}

func ExampleTx_CommitSeq() {
	db := openExample()
	defer db.Close()

	var done *cairn.Tx
	must(db.Update(func(tx *cairn.Tx) error {
		done = tx
		return tx.Put([]byte("k"), []byte("v"))
	}))
	fmt.Println(done.CommitSeq())
	// Output: 1
}

func ExampleTx_SetDurability() {
	db := openExample() // Durable by default
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error {
		tx.SetDurability(cairn.Relaxed) // this one may be lost in a power cut
		return tx.Put([]byte("last seen"), []byte("now"))
	}))
	fmt.Println(db.Has([]byte("last seen")))
	// Output: true <nil>
}

func ExampleIterator() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		it := tx.Iter(cairn.Prefix([]byte("fruit/")))
		defer it.Close()
		show := func(ok bool) { fmt.Println(ok, it.Valid(), string(it.Key())) }
		show(it.First())
		show(it.Next())
		show(it.Last())
		show(it.Prev())
		show(it.Seek([]byte("fruit/c")))
		show(it.SeekLT([]byte("fruit/c")))
		show(it.Seek([]byte("tree/"))) // beyond the range
		return it.Err()
	}))
	// Output:
	// true true fruit/apple
	// true true fruit/banana
	// true true fruit/plum
	// true true fruit/cherry
	// true true fruit/cherry
	// true true fruit/banana
	// false false
}

func ExampleIterator_Value() {
	db := openFruit()
	defer db.Close()

	must(db.View(func(tx *cairn.Tx) error {
		it := tx.Iter(cairn.Prefix([]byte("fruit/")))
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			if string(it.Key()) != "fruit/cherry" {
				continue // its value is not read
			}
			v, err := it.Value()
			fmt.Printf("%s %v\n", v, err)
		}
		return it.Err()
	}))
	// Output: red <nil>
}

func ExamplePrefix() {
	fmt.Printf("%q\n", cairn.Prefix([]byte("fruit/")))
	fmt.Println(cairn.Prefix([]byte("\xff")).High == nil) // nothing is above
	// Output:
	// {"fruit/" "fruit0"}
	// true
}

func ExampleDB_Sync() {
	db, err := cairn.Open("/db", &cairn.Options{FS: memfs.New(), Durability: cairn.Relaxed})
	must(err)
	defer db.Close()

	for i := range 1000 {
		must(db.Put(fmt.Appendf(nil, "%04d", i), nil)) // cheap
	}
	fmt.Println(db.Sync()) // now all of them survive a power cut
	// Output: <nil>
}

func ExampleDB_Compact() {
	db := openFruit()
	defer db.Close()

	must(db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{}) }))
	fmt.Println(db.Compact(context.Background(), cairn.Range{}))
	fmt.Println(db.Stats().Entries) // the space is free already
	// Output:
	// <nil>
	// 0
}

func ExampleDB_Verify() {
	db := openFruit()
	defer db.Close()

	must(db.Compact(context.Background(), cairn.Range{})) // so that there is a table
	report, err := db.Verify(context.Background())
	fmt.Println(report.Tables, report.Entries, len(report.Problems), err)
	// Output: 1 5 0 <nil>
}

func ExampleDB_Stats() {
	db := openFruit()
	defer db.Close()

	tx, err := db.Begin(false)
	must(err)
	defer tx.Rollback()
	s := db.Stats()
	fmt.Println(s.Seq, s.OpenTransactions, s.Recovery.DroppedBytes, s.BackgroundError)
	// Output: 5 1 0 <nil>
}

func ExampleConflictError() {
	db := openFruit()
	defer db.Close()

	tx, err := db.Begin(true)
	must(err)
	defer tx.Rollback()
	n := 0
	for range tx.Keys(cairn.Prefix([]byte("fruit/"))) {
		n++
	}
	must(tx.Put([]byte("count"), []byte{byte(n)}))
	must(db.Put([]byte("fruit/fig"), []byte("purple"))) // a phantom: it makes the count wrong
	fmt.Println(tx.Commit())
	// Output: cairn: transaction conflict on key "fruit/fig"
}

func ExampleEvent() {
	flushed := make(chan cairn.Event, 10)
	db, err := cairn.Open("/db", &cairn.Options{FS: memfs.New(), OnEvent: func(e cairn.Event) {
		if e.Kind == cairn.EventFlush {
			flushed <- e
		}
	}})
	must(err)
	defer db.Close()

	must(db.Put([]byte("k"), []byte("v")))
	must(db.Compact(context.Background(), cairn.Range{}))
	e := <-flushed
	fmt.Println(e.Done > 0, e.Err)
	// Output: true <nil>
}
