package cairn_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestFullDiskOfItsOwn: a store alone on a small disk filled it by overwriting a few
// keys. The space put aside was less than one flush needs: deleting everything freed
// nothing, and the store could neither go on, nor close, nor be opened again.
func TestFullDiskOfItsOwn(t *testing.T) {
	for _, c := range []struct {
		memory, disk int64
		keys         int
		durability   cairn.Durability
	}{{64 << 20, 24 << 20, 300, 0}, {16 << 20, 12 << 20, 150, 0}, {16 << 20, 12 << 20, 150, cairn.Relaxed}, {4 << 20, 6 << 20, 30, 0}} {
		t.Run(fmt.Sprintf("%d MiB, durability %v", c.memory>>20, c.durability), func(t *testing.T) {
			if c.memory < 16<<20 {
				large(t)
			}
			m := memfs.New()
			m.StopJournal()
			m.SetCapacity(c.disk)
			db := openAt(t, "/db", &cairn.Options{FS: m, Memory: c.memory, Durability: c.durability})
			last := fillDisk(t, db, c.keys)
			for k, v := range last {
				wantValue(t, db, k, v)
			}
			check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{}) }))
			var err error
			for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if err = db.Put(b("after"), b("the flood")); err == nil {
					break
				}
				expect(t, err, cairn.ErrNoSpace)
			}
			check(t, err) // everything was deleted: there is space
			last = fillDisk(t, db, c.keys)
			check(t, db.Close())
			db = openAt(t, "/db", &cairn.Options{FS: m, Memory: c.memory, Durability: c.durability})
			for k, v := range last {
				wantValue(t, db, k, v)
			}
			_, err = db.Verify(t.Context())
			check(t, err)
		})
	}
}

// TestFullDiskGoesOn: on a disk several times as large as what a store holds it can be written to for
// ever, in bursts faster than it merges. Level 0 took all space once, in which nothing could be merged
// any more: every put failed from then on, though nine tenths of the disk were garbage.
func TestFullDiskGoesOn(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(fmt.Sprintf("durability %v", durability), func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			size, keys, most := int64(64<<20), 12_000, 200<<20 // 14 MB of 64
			if testing.Short() {
				size, keys, most = size/4, keys/4, 32<<20
			}
			m.SetCapacity(size)
			db := openAt(t, "/db", &cairn.Options{FS: m, Memory: size / 2, Durability: durability})
			random, draw := rand.NewChaCha8([32]byte{3}), rand.New(rand.NewPCG(3, 3))
			last := map[string]string{}
			v := make([]byte, 1100)
			full, stuck := 0, time.Time{}
			for written := 0; written < most; {
				random.Read(v)
				k := fmt.Sprintf("key%06d", draw.IntN(keys))
				err := db.Put(b(k), v)
				switch {
				case err == nil:
					written, stuck = written+len(v), time.Time{}
					last[k] = string(v)
					continue
				case stuck.IsZero():
					full, stuck = full+1, time.Now()
				case time.Since(stuck) > 20*time.Second:
					s := db.Stats()
					t.Fatalf("after %d MB every put fails; %d runs, level 0: %v", written>>20, s.Runs, s.Levels[0])
				}
				expect(t, err, cairn.ErrNoSpace)
				time.Sleep(time.Millisecond)
			}
			t.Logf("full for a moment %d times", full)
			for k, v := range last {
				wantValue(t, db, k, v)
			}
		})
	}
}

// TestFullDiskOfLargeTransactions: the same where each commit is a run of level 0 of its own.
func TestFullDiskOfLargeTransactions(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	m.SetCapacity(48 << 20)
	db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 8 << 20})
	random := rand.NewChaCha8([32]byte{4})
	v := make([]byte, 4000)
	last := map[string]string{}
	transactions := 30
	if testing.Short() {
		transactions = 10
	}
	for i := range transactions { // half of 12 MB each, of other keys
		now := map[string]string{}
		var err error
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			err = db.Update(func(tx *cairn.Tx) error {
				for k := range 1500 {
					random.Read(v)
					key := fmt.Sprintf("key%06d", (k*2+i%2)*7919%3001)
					if err := tx.Put(b(key), v); err != nil {
						return err
					}
					now[key] = string(v)
				}
				return nil
			})
			if err == nil || time.Now().After(deadline) {
				break
			}
			expect(t, err, cairn.ErrNoSpace)
		}
		if err != nil {
			t.Fatalf("transaction %d: %v; level 0: %v", i, err, db.Stats().Levels[0])
		}
		maps.Copy(last, now)
	}
	for k, v := range last {
		wantValue(t, db, k, v)
	}
}

// fillDisk overwrites a few keys with noise until the disk is full, and returns what
// they are then.
func fillDisk(t *testing.T, db *cairn.DB, keys int) map[string]string {
	t.Helper()
	random := rand.NewChaCha8([32]byte{2})
	last := map[string]string{}
	for i := range 6_000 {
		v := make([]byte, 16_000)
		random.Read(v)
		k := fmt.Sprintf("key%03d", i%keys)
		err := db.Put(b(k), v)
		if errors.Is(err, cairn.ErrNoSpace) {
			return last
		}
		check(t, err)
		last[k] = string(v)
	}
	return last // compaction keeps up: the disk, which has taken four times its size or more, never fills
}

// TestSpaceIsPutAsideAtOnce: a store that holds something has space for a flush from its first
// commit after Open on. It had none for its first two log segments: if the disk became full
// then, neither of them could be flushed, whatever was deleted (4 of 100 runs of what
// TestFullDiskOfItsOwn does, three times over, by a relaxed store).
func TestSpaceIsPutAsideAtOnce(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		m := memfs.New()
		o := &cairn.Options{FS: m, Durability: durability}
		db := openAt(t, "/db", o)
		check(t, db.Put(b("little"), b("value")))
		if n := aside(m); n != 0 {
			t.Errorf("durability %v: %d bytes are put aside by a store that holds little", durability, n)
		}
		check(t, db.Put(b("more"), make([]byte, 1<<20)))
		check(t, db.Put(b("noise"), noise(1<<20)))
		check(t, db.Close())
		db = openAt(t, "/db", o)
		check(t, db.Put(b("little"), b("value")))
		if n := aside(m); n < 512<<10*5/4+256<<10 {
			t.Errorf("durability %v: %d bytes are put aside", durability, n)
		}
		check(t, db.Close())
	}
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	v := make([]byte, n)
	random := rand.NewChaCha8([32]byte{3})
	random.Read(v)
	return v
}

// TestDiskFullOfWaitingMemtables: a few keys are overwritten with what compresses to nothing. The disk
// has room for it many times over once memtables are flushed, but not for the log segment that
// follows those there were: no put fails, and none waits for ever.
func TestDiskFullOfWaitingMemtables(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(d.String(), func(t *testing.T) {
			m := memfs.New()
			m.StopJournal()
			m.SetCapacity(32 << 20)
			db := openAt(t, "/db", &cairn.Options{FS: m, Memory: 1 << 30, Durability: d})
			value := make([]byte, 16_000)
			for n := range 4000 {
				if err := db.Put(fmt.Appendf(nil, "key%03d", n%100), value); err != nil {
					t.Fatalf("put %d: %v; %d bytes of the disk are used", n, err, m.Used())
				}
			}
		})
	}
}

// TestRoomAfterTheFlood: everything on a full disk was deleted by one delete, which stands in the small
// active segment: a put that does not fit behind it finds space in the end, too.
func TestRoomAfterTheFlood(t *testing.T) {
	largest := int64(24)
	if testing.Short() {
		largest = 12 // nobody does anything else on a larger one, but for longer
	}
	for _, memory := range []int64{4 << 20, 16 << 20, 64 << 20} {
		for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
			for disk := int64(12); disk <= largest; disk += 4 {
				t.Run(fmt.Sprintf("memory %d MiB, disk %d MiB, %v", memory>>20, disk, d), func(t *testing.T) {
					t.Parallel()
					m := memfs.New()
					m.StopJournal()
					m.SetCapacity(disk << 20)
					db := openAt(t, "/db", &cairn.Options{FS: m, Memory: memory, Durability: d})
					fillDisk(t, db, 20_000)
					check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{}) }))
					err := cairn.ErrNoSpace
					for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
						if err = db.Put(b("after"), make([]byte, 60_000)); err != nil {
							expect(t, err, cairn.ErrNoSpace)
						}
					}
					if s := db.Stats(); err != nil {
						t.Errorf("%v; log %d, tables %d, used %d", err, s.LogBytes, s.Tables, m.Used())
					}
				})
			}
		}
	}
}

// TestNoSegmentWhereThereIsSpace: space can be put aside, but no file of the log be made. A delete, which gets of that space
// what it needs, tried for ever.
func TestNoSegmentWhereThereIsSpace(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	f := faultfs.New(m)
	db := openAt(t, "/db", &cairn.Options{FS: f, Memory: 1 << 20})
	for i := range 2000 { // more than a small store puts aside
		check(t, db.Put(fmt.Appendf(nil, "key%05d", i), make([]byte, 1000)))
	}
	f.Add(faultfs.Rule{Kinds: faultfs.Create | faultfs.Preallocate | faultfs.Rename, Name: "*.log", Sticky: true, Do: faultfs.NoSpace()})
	refused := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			if err := db.Delete(fmt.Appendf(nil, "key%05d", i)); err != nil {
				refused <- err
				return
			}
		}
	}()
	select {
	case err := <-refused:
		expect(t, err, cairn.ErrNoSpace)
	case <-time.After(time.Minute):
		t.Error("a delete neither ends nor fails")
	}
	f.Heal()
	check(t, db.Delete(b("key00000")))
}

// TestFirstCommitsOnASmallDisk: a store that held little put nothing aside for the flush of a commit that was much:
// it was acknowledged, Close found no space for its table, and neither did any Open after that, so that
// nothing could be deleted.
func TestFirstCommitsOnASmallDisk(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		for _, size := range []int{20_000, 200_000, 300_000, 700_000, 2_000_000} {
			t.Run(fmt.Sprintf("%v, commits of %d", d, size), func(t *testing.T) {
				t.Parallel()
				for _, disk := range []int64{600_000, 700_000, 800_000, 900_000, 1_000_000, 1_100_000, 1_200_000, 1_400_000, 2_000_000, 2_700_000, 3_300_000, 5_000_000, 8_000_000} {
					m := smallDisk(disk)
					o := &cairn.Options{FS: m, Durability: d}
					if err := fillAndReopen(t, o, size); err != nil {
						t.Fatalf("a disk of %d bytes: %v; %d of them are used", disk, err, m.Used())
					}
				}
			})
		}
	}
}

// fillAndReopen puts values of a size into a new store until there is no space, and returns what goes wrong when it is
// closed, opened and emptied. A disk may be too small for a store.
func fillAndReopen(t *testing.T, o *cairn.Options, size int) error {
	db, err := cairn.Open("/db", o)
	if errors.Is(err, cairn.ErrNoSpace) {
		return nil
	}
	check(t, err)
	n, value := 0, make([]byte, size)
	write := func(i int) []byte { // no two alike: else the disk fills only after many merges
		rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(value)
		return value
	}
	for err == nil {
		if err = db.Put(fmt.Append(nil, n), write(n)); err == nil {
			n++
		}
	}
	expect(t, err, cairn.ErrNoSpace)
	if err := db.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if db, err = cairn.Open("/db", o); err != nil {
		return err
	}
	for i := range n {
		wantValue(t, db, fmt.Sprint(i), string(write(i)))
	}
	check(t, db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(cairn.Range{}) }))
	check(t, db.Close())
	db = openAt(t, "/db", o)
	if err := db.Put(b("after"), value[:1000]); err != nil {
		return fmt.Errorf("a put after everything was deleted: %w", err)
	}
	return db.Close()
}

// TestLargeCommitOnASmallDisk: the log has no space for a large commit beside what is put aside for the flush of its segment, but as
// tables it fits. These found no space either: what had been put aside for that segment stayed so.
func TestLargeCommitOnASmallDisk(t *testing.T) {
	for _, kind := range []string{"put", "batch", "update"} {
		t.Run(kind, func(t *testing.T) {
			db := openAt(t, "/db", &cairn.Options{FS: smallDisk(32 << 20), Memory: 1 << 30})
			check(t, db.Put(b("before"), noise(300_000)))
			key, value := b("large"), noise(20<<20)
			var err error
			switch kind {
			case "put":
				err = db.Put(key, value)
			case "batch":
				var batch cairn.Batch
				batch.Put(key, value)
				err = db.Write(&batch)
			default:
				err = db.Update(func(tx *cairn.Tx) error { return tx.Put(key, value) })
			}
			check(t, err)
			wantValue(t, db, "large", string(value))
			check(t, db.Close())
		})
	}
}
