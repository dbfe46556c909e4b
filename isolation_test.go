package cairn_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/histories"
	"github.com/cairndb/cairn/internal/invariants"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestSerializable: no anomaly in CAIRN_TRANSACTIONS transactions, a fifth of which
// or more meet a conflict. internal/engine has its counterpart, which shows that
// the same check fails at once when validation is off.
func TestSerializable(t *testing.T) {
	n := count("CAIRN_TRANSACTIONS", 100_000)
	if testing.Short() {
		n = 20_000
	}
	db := openNew(t, &cairn.Options{Durability: cairn.Relaxed, Memory: 1 << 20})
	res, err := histories.Run(db, histories.Config{Transactions: n, Workers: 8, Cells: 16, Seed: testSeed(t)})
	if err != nil {
		t.Fatalf("after %v: %v", res, err)
	}
	t.Log(res)
	if res.Conflicted*5 < res.Committed {
		t.Errorf("only %d of %d transactions met a conflict; this shows too little", res.Conflicted, res.Committed)
	}
}

// TestSerializableEverywhere: the same where commits wait for their sync, where
// what a transaction has to be checked against has gone to tables, and where large
// transactions spill.
func TestSerializableEverywhere(t *testing.T) {
	slow := func() *cairn.Options {
		m := memfs.New()
		m.StopJournal()
		f := faultfs.New(m)
		f.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true, Do: faultfs.Delay(200 * time.Microsecond)})
		return &cairn.Options{FS: f, Memory: 8 << 20}
	}
	for _, c := range []struct {
		name string
		opts *cairn.Options
		conf histories.Config
	}{
		{"pending durable commits", slow(), histories.Config{Transactions: 4000, Workers: 8}},
		{"durable and relaxed mixed", &cairn.Options{FS: slow().FS, Durability: cairn.Relaxed}, histories.Config{Transactions: 8000, Workers: 8, DurableEvery: 8}},
		{"through flushed tables", &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed},
			histories.Config{Transactions: 20000, Workers: 6, Pad: 2000, PauseEvery: 500, Pause: 30 * time.Millisecond}},
		{"large and small", &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed},
			histories.Config{Transactions: 4000, Workers: 6, Pad: 200, LargeEvery: 40, LargeBytes: 200 << 10, Cells: 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := openNew(t, c.opts)
			c.conf.Seed = testSeed(t)
			if invariants.Enabled { // with assertions, and mostly -race, five times slower
				c.conf.Transactions /= 4
			}
			res, err := histories.Run(db, c.conf)
			s := db.Stats()
			t.Logf("%v; %d flushes, %d compactions", res, s.Flushes, s.Compactions)
			if err != nil {
				t.Fatal(err)
			}
			if c.conf.Pad > 0 && s.Flushes < 5 {
				t.Errorf("only %d flushes", s.Flushes)
			}
		})
	}
}

// failing lets an operation of the disk fail every millisecond, as next has it, nil being none. What it returns ends that.
func failing(disk *faultfs.FS, seed uint64, next func(r *rand.Rand) *faultfs.Rule) (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for r := rand.New(rand.NewPCG(seed, 8)); ; time.Sleep(time.Millisecond) {
			select {
			case <-stop:
				disk.Heal()
				return
			default:
			}
			if rule := next(r); rule != nil {
				disk.Heal() // of those that have hit already
				disk.Add(*rule)
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// TestSerializableOnAFailingDisk: what failed is seen by nobody, and nobody is validated against it.
func TestSerializableOnAFailingDisk(t *testing.T) {
	late := func(r *rand.Rand) faultfs.Action {
		return faultfs.Short(r.IntN(300), syscall.EIO).Late(time.Duration(r.IntN(500)) * time.Microsecond)
	}
	log := func(disk *faultfs.FS) func(r *rand.Rand) *faultfs.Rule { // some writes come late, and their sequences are given to others
		active := "" // what commits are written to
		return func(r *rand.Rand) *faultfs.Rule {
			for _, e := range disk.Trace(faultfs.Write) {
				if e.Offset > 4096 && strings.HasSuffix(e.Name, ".log") { // of a new segment the first write must not fail
					active = filepath.Base(e.Name)
				}
			}
			disk.StartTrace()
			if active == "" {
				return nil
			}
			return &faultfs.Rule{Kinds: faultfs.Write, Name: active, At: int64(1 + r.IntN(10)), Do: late(r)}
		}
	}
	tables := func(*faultfs.FS) func(r *rand.Rand) *faultfs.Rule {
		kinds := []faultfs.Kind{faultfs.Read, faultfs.Read, faultfs.Write, faultfs.Create, faultfs.Open}
		return func(r *rand.Rand) *faultfs.Rule {
			return &faultfs.Rule{Kinds: kinds[r.IntN(len(kinds))], Name: "*.sst", At: int64(1 + r.IntN(5)), Do: late(r)}
		}
	}
	small := histories.Config{Transactions: 8000, Workers: 8, Cells: 24, Pad: 200, DurableEvery: 2}
	for _, c := range []struct {
		name   string
		memory int64
		fail   func(*faultfs.FS) func(r *rand.Rand) *faultfs.Rule
		conf   histories.Config
	}{
		{"log, 1 MiB", 1 << 20, log, small},
		{"log, 64 MiB", 64 << 20, log, small},
		{"tables", 1 << 20, tables, histories.Config{Transactions: 4000, Workers: 6, Pad: 2000, LargeEvery: 40, LargeBytes: 200 << 10, Cells: 200, DurableEvery: 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.conf.Seed = testSeed(t)
			m := memfs.New()
			m.StopJournal()
			disk := faultfs.New(m)
			db := openAt(t, "/db", &cairn.Options{FS: disk, Memory: c.memory, Durability: cairn.Relaxed})
			defer failing(disk, c.conf.Seed, c.fail(disk))()
			c.conf.Excused = func(err error) bool { return errors.Is(err, syscall.EIO) }
			if invariants.Enabled {
				c.conf.Transactions /= 4
			}
			res, err := histories.Run(db, c.conf)
			t.Log(res)
			if err != nil {
				t.Fatal(err)
			}
			if res.Failed < c.conf.Transactions/400 {
				t.Errorf("only %d transactions failed; this shows too little", res.Failed)
			}
		})
	}
}

// TestNoFalseConflicts: writers of keys of their own never meet a conflict.
func TestNoFalseConflicts(t *testing.T) {
	db := openNew(t, &cairn.Options{Durability: cairn.Relaxed, Memory: 1 << 20})
	var tries, commits atomic.Int64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				key := fmt.Appendf(nil, "key%05d", i%500*4+w) // neighbours belong to others
				err := db.Update(func(tx *cairn.Tx) error {
					tries.Add(1)
					v, err := tx.Get(key)
					if err != nil && !errors.Is(err, cairn.ErrNotFound) {
						return err
					}
					return tx.Put(key, append(v[:len(v):len(v)], make([]byte, 20)...))
				})
				if err != nil {
					t.Error(err)
					return
				}
				commits.Add(1)
			}
		})
	}
	wg.Wait()
	if tries.Load() != commits.Load() {
		t.Errorf("%d attempts for %d transactions", tries.Load(), commits.Load())
	}
	if f := db.Stats().Flushes; f == 0 {
		t.Error("nothing was flushed")
	}
}

// TestBank: money moves between accounts; every snapshot holds the same sum.
func TestBank(t *testing.T) {
	const accounts, each = 20, 1000
	account := func(i int) []byte { return fmt.Appendf(nil, "account%02d", i) }
	money := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
	for i := range accounts {
		check(t, db.Put(account(i), money(each)))
	}
	audit := func(tx *cairn.Tx) error {
		sum := uint64(0)
		for _, v := range tx.Scan(cairn.Prefix(b("account"))) {
			sum += binary.LittleEndian.Uint64(v)
		}
		if err := tx.Err(); err != nil {
			return err
		}
		if sum != accounts*each {
			return fmt.Errorf("the sum is %d", sum)
		}
		return nil
	}
	transfer := func(r *rand.Rand) func(tx *cairn.Tx) error {
		from, to := r.IntN(accounts), r.IntN(accounts)
		return func(tx *cairn.Tx) error {
			a, err := tx.Get(account(from))
			if err != nil {
				return err
			}
			have := binary.LittleEndian.Uint64(a)
			amount := min(have, r.Uint64N(50))
			if err := tx.Put(account(from), money(have-amount)); err != nil {
				return err
			}
			c, err := tx.Get(account(to)) // its own write, if from == to
			if err != nil {
				return err
			}
			return tx.Put(account(to), money(binary.LittleEndian.Uint64(c)+amount))
		}
	}
	var wg sync.WaitGroup
	for w := range uint64(6) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(w, 7))
			for i := range 2000 {
				err := db.Update(transfer(r))
				if err == nil && i%20 == 0 {
					err = db.View(audit)
				}
				if err == nil && i%101 == 0 {
					err = db.Update(audit)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	check(t, db.View(audit))
}

// pair begins two transactions on the same snapshot.
func pair(t *testing.T, db *cairn.DB) (a, b *cairn.Tx) {
	t.Helper()
	a, err := db.Begin(true)
	check(t, err)
	b, err = db.Begin(true)
	check(t, err)
	t.Cleanup(func() { a.Rollback(); b.Rollback() })
	return a, b
}

func TestWriteSkew(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "x", "on")
	put(t, db, "y", "on")
	one, two := pair(t, db)
	for _, tx := range []*cairn.Tx{one, two} {
		for _, k := range []string{"x", "y"} {
			_, err := tx.Get(b(k))
			check(t, err)
		}
	}
	check(t, one.Put(b("x"), b("off")))
	check(t, two.Put(b("y"), b("off")))
	check(t, one.Put(b("z"), b("off"))) // behind what the other has read
	check(t, one.Commit())
	err := two.Commit()
	expect(t, err, cairn.ErrConflict)
	var c *cairn.ConflictError
	if !errors.As(err, &c) || string(c.Low) != "x" || c.High != nil || c.Seq != one.CommitSeq()-1 {
		t.Fatalf("%#v", err)
	}
	wantValue(t, db, "y", "on")
	if two.CommitSeq() != 0 {
		t.Error("a failed commit has a sequence")
	}
}

// TestConflicts: what read conflicts with what write of another transaction. Each
// runs with the other's write still in the log, and with it in tables.
func TestConflicts(t *testing.T) {
	rng := func(low, high string) cairn.Range { return cairn.Range{Low: b(low), High: b(high)} }
	get := func(k string) func(tx *cairn.Tx) { return func(tx *cairn.Tx) { tx.Get(b(k)) } }
	has := func(k string) func(tx *cairn.Tx) { return func(tx *cairn.Tx) { tx.Has(b(k)) } }
	scan := func(r cairn.Range, limit int) func(tx *cairn.Tx) {
		return func(tx *cairn.Tx) {
			n := limit
			for range tx.Keys(r) {
				if n--; n == 0 {
					return
				}
			}
		}
	}
	back := func(r cairn.Range, limit int) func(tx *cairn.Tx) {
		return func(tx *cairn.Tx) {
			n := limit
			for range tx.ScanBackward(r) {
				if n--; n == 0 {
					return
				}
			}
		}
	}
	iter := func(move func(it *cairn.Iterator)) func(tx *cairn.Tx) {
		return func(tx *cairn.Tx) { move(tx.Iter(cairn.Range{})) } // left open
	}
	putting := func(k string) func(tx *cairn.Tx) error {
		return func(tx *cairn.Tx) error { return tx.Put(b(k), b("new")) }
	}
	deleting := func(k string) func(tx *cairn.Tx) error { return func(tx *cairn.Tx) error { return tx.Delete(b(k)) } }
	clearing := func(r cairn.Range) func(tx *cairn.Tx) error {
		return func(tx *cairn.Tx) error { return tx.DeleteRange(r) }
	}
	for name, c := range map[string]struct {
		read     func(tx *cairn.Tx)
		write    func(tx *cairn.Tx) error
		conflict bool
	}{
		"get, put":                          {get("d"), putting("d"), true},
		"get, put of another":               {get("d"), putting("dd"), false},
		"get of absent, put":                {get("dd"), putting("dd"), true},
		"get, delete":                       {get("d"), deleting("d"), true},
		"get, range delete":                 {get("d"), clearing(rng("c", "e")), true},
		"get, range delete from it on":      {get("d"), clearing(rng("d", "e")), true},
		"get, range delete up to it":        {get("d"), clearing(rng("c", "d")), false},
		"get, range delete of everything":   {get("d"), clearing(cairn.Range{}), true},
		"get of absent, range delete":       {get("dd"), clearing(rng("d", "e")), true},
		"has, put":                          {has("d"), putting("d"), true},
		"put if absent, put":                {func(tx *cairn.Tx) { tx.PutIfAbsent(b("q"), b("1")) }, putting("q"), true},
		"failed swap, put":                  {func(tx *cairn.Tx) { tx.CompareAndSwap(b("d"), b("no"), b("1")) }, putting("d"), true},
		"scan, phantom":                     {scan(rng("b", "f"), 0), putting("cc"), true},
		"scan, phantom at its end":          {scan(rng("b", "f"), 0), putting("f"), false},
		"scan, phantom at its start":        {scan(rng("b", "f"), 0), putting("b"), true},
		"scan, phantom before":              {scan(rng("b", "f"), 0), putting("aa"), false},
		"scan, phantom behind the last row": {scan(rng("b", "f"), 0), putting("ezz"), true},
		"scan of nothing, phantom":          {scan(rng("x", "z"), 0), putting("y"), true},
		"scan, range delete at its end":     {scan(rng("b", "f"), 0), clearing(rng("f", "g")), false},
		"scan, range delete of a gap in it": {scan(rng("b", "f"), 0), clearing(rng("cc", "cd")), true},
		"broken off scan, in front":         {scan(rng("b", "f"), 2), putting("bb"), true},
		"broken off scan, its last row":     {scan(rng("b", "f"), 2), deleting("c"), true},
		"broken off scan, behind":           {scan(rng("b", "f"), 2), putting("cc"), false},
		"backward scan, phantom":            {back(rng("b", "f"), 0), putting("cc"), true},
		"backward scan, before its first":   {back(rng("bb", "f"), 0), putting("bbb"), true},
		"backward scan, at its end":         {back(rng("b", "f"), 0), putting("f"), false},
		"broken off backward scan, seen":    {back(rng("b", "f"), 2), putting("ee"), true},
		"broken off backward scan, last":    {back(rng("b", "f"), 2), putting("d"), true},
		"broken off backward scan, unseen":  {back(rng("b", "f"), 2), putting("cc"), false},
		"seek, the gap it passed":           {iter(func(it *cairn.Iterator) { it.Seek(b("cc")) }), putting("ccc"), true},
		"seek, behind the row it found":     {iter(func(it *cairn.Iterator) { it.Seek(b("cc")) }), putting("dd"), false},
		"seek, before what it sought":       {iter(func(it *cairn.Iterator) { it.Seek(b("cc")) }), putting("cb"), false},
		"seek below, the gap it passed":     {iter(func(it *cairn.Iterator) { it.SeekLT(b("dd")) }), putting("da"), true},
		"seek below, the key sought":        {iter(func(it *cairn.Iterator) { it.SeekLT(b("dd")) }), putting("dd"), false},
		"back and forth":                    {iter(func(it *cairn.Iterator) { it.Seek(b("d")); it.Prev(); it.Next() }), putting("cc"), true},
		"back and forth, outside":           {iter(func(it *cairn.Iterator) { it.Seek(b("d")); it.Prev(); it.Next() }), putting("bb"), false},
		"last, a key behind":                {iter(func(it *cairn.Iterator) { it.Last() }), putting("zz"), true},
		"first, a key before":               {iter(func(it *cairn.Iterator) { it.First() }), putting("0"), true},
		"blind":                             {func(*cairn.Tx) {}, putting("d"), false},
		"own write read back":               {func(tx *cairn.Tx) { tx.Put(b("d"), b("mine")); tx.Get(b("d")) }, putting("d"), false},
		"own delete read back":              {func(tx *cairn.Tx) { tx.DeleteRange(cairn.Range{}); tx.Get(b("d")) }, putting("d"), false},
		"iterator not moved":                {iter(func(*cairn.Iterator) {}), putting("d"), false},
		"seek, and step back over the key":  {iter(func(it *cairn.Iterator) { it.Seek(b("d")); it.Prev() }), deleting("d"), true},
		"ran off the end, then back":        {iter(func(it *cairn.Iterator) { it.Seek(b("f")); it.Next(); it.Next(); it.SeekLT(b("bb")) }), putting("x"), true},
	} {
		for _, flushed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/flushed=%v", name, flushed), func(t *testing.T) {
				db := openNew(t, &cairn.Options{Durability: cairn.Relaxed})
				for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
					put(t, db, k, "old")
				}
				tx, err := db.Begin(true)
				check(t, err)
				defer tx.Rollback()
				c.read(tx)
				check(t, tx.Put(b("result"), b("1")))
				check(t, db.Update(c.write))
				if flushed {
					check(t, db.Compact(t.Context(), cairn.Range{}))
				}
				if err := tx.Commit(); errors.Is(err, cairn.ErrConflict) != c.conflict || err != nil && !c.conflict {
					t.Fatalf("commit: %v; conflict %v", err, c.conflict)
				}
			})
		}
	}
}

// TestConflictWithEverythingDeleted: the error says that the range has no upper bound.
func TestConflictWithEverythingDeleted(t *testing.T) {
	db := openNew(t, nil)
	put(t, db, "a", "1")
	one, two := pair(t, db)
	for range two.Keys(cairn.Range{}) {
	}
	check(t, two.Put(b("z"), nil))
	check(t, one.DeleteRange(cairn.Range{}))
	check(t, one.Commit())
	var c *cairn.ConflictError
	if err := two.Commit(); !errors.As(err, &c) || c.High == nil || len(c.High) != 0 {
		t.Fatalf("%#v", err)
	}
}

// TestConflictWithPendingCommit: a transaction that read what a durable commit,
// whose sync is still under way, has overwritten must not get past it; Update
// waits for the outcome instead of spinning.
func TestConflictWithPendingCommit(t *testing.T) {
	m := memfs.New()
	f := faultfs.New(m)
	db := openAt(t, "/db", &cairn.Options{FS: f})
	overlapped := false
	for delay := 20 * time.Millisecond; !overlapped; delay *= 4 {
		if delay > 10*time.Second {
			t.Fatal("the machine is too slow for this test")
		}
		put(t, db, "x", "old")
		slow := f.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", Sticky: true, Do: faultfs.Delay(delay)})
		synced := make(chan error, 1)
		started := time.Now()
		go func() { synced <- db.Put(b("x"), b("new")) }()
		time.Sleep(delay / 4)
		seen, err := db.Get(b("x"))
		check(t, err)
		if string(seen) != "old" && time.Since(started) < delay {
			t.Errorf("%q is seen before it is durable", seen)
		}
		tries := 0
		check(t, db.Update(func(tx *cairn.Tx) error {
			tries++
			v, err := tx.Get(b("x"))
			if err != nil {
				return err
			}
			overlapped = overlapped || string(v) == "old"
			return tx.Put(b("seen"), append([]byte("saw "), v...))
		}))
		check(t, <-synced)
		slow.Stop()
		wantValue(t, db, "seen", "saw new")
		if tries > 2 {
			t.Errorf("%d attempts; the second should have waited for the outcome", tries)
		}
	}
}

// TestConflictWithFailedCommit: the pending commit it conflicts with fails, and
// then is nobody's conflict any more.
func TestConflictWithFailedCommit(t *testing.T) {
	f := faultfs.New(memfs.New())
	db := openAt(t, "/db", &cairn.Options{FS: f})
	put(t, db, "x", "old")
	f.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", Do: faultfs.Fail(syscall.EIO)})
	expect(t, db.Put(b("x"), b("lost")), syscall.EIO)
	wantValue(t, db, "x", "old")
	check(t, db.Update(func(tx *cairn.Tx) error {
		v, err := tx.Get(b("x"))
		if err == nil && string(v) != "old" {
			err = fmt.Errorf("read %q, which was never committed", v)
		}
		if err != nil {
			return err
		}
		return tx.Put(b("x"), b("new"))
	}))
	wantValue(t, db, "x", "new")
}

// TestOldSnapshotThroughFlushes: a transaction that began many flushes ago commits
// if nobody touched what it read, and does not if somebody did.
func TestOldSnapshotThroughFlushes(t *testing.T) {
	for _, touch := range []string{"", "put", "delete", "range"} {
		t.Run("touch="+touch, func(t *testing.T) {
			db := openNew(t, &cairn.Options{Memory: 1 << 20, Durability: cairn.Relaxed})
			put(t, db, "mine", "1")
			tx, err := db.Begin(true)
			check(t, err)
			defer tx.Rollback()
			_, err = tx.Get(b("mine"))
			check(t, err)
			for range tx.Keys(cairn.Range{Low: b("m"), High: b("n")}) {
			}
			churn := func(n int) {
				for i := range n {
					check(t, db.Put(fmt.Appendf(nil, "other%05d", i), make([]byte, 500)))
				}
			}
			churn(2000)
			switch touch {
			case "put":
				put(t, db, "mine", "2")
			case "delete":
				check(t, db.Delete(b("mine")))
			case "range":
				check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{Low: b("mi"), High: b("mj")}) }))
			}
			churn(2000)
			check(t, db.Compact(t.Context(), cairn.Range{}))
			if n := db.Stats().Flushes; n < 4 {
				t.Fatalf("only %d flushes", n)
			}
			check(t, tx.Put(b("mine"), b("3")))
			if err := tx.Commit(); errors.Is(err, cairn.ErrConflict) != (touch != "") {
				t.Fatal(err)
			}
		})
	}
}
