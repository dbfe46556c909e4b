package cairn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// Stores that were killed on a full disk, and are opened on it.

// killedFull returns what a process leaves that was killed while no table could be written: several
// log segments of what cannot be compressed, behind a large transaction whose tables only the log
// names, and what is left of a flush. want is what it holds.
func killedFull(t *testing.T, d cairn.Durability) (whole *memfs.FS, want map[string]string) {
	t.Helper()
	m := memfs.New()
	if d == cairn.Relaxed {
		m.AllowMaps() // provisional segments
	}
	disk := faultfs.New(m)
	opts := &cairn.Options{FS: disk, Memory: 4 << 20, Durability: d}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	fillUp(t, db, "old", 20)
	check(t, db.Close())
	db, err = cairn.Open("/db", opts)
	check(t, err)
	full := largeThenFull(t, db, disk)
	r := rand.New(rand.NewPCG(1, 2))
	for i, err := 0, error(nil); i < 120; i++ {
		noise := make([]byte, 6<<10)
		for j := range noise {
			noise[j] = byte(r.Uint32())
		}
		if err = db.Put(fmt.Append(nil, "noise", i), noise); err != nil {
			expect(t, err, cairn.ErrNoSpace)
			break
		}
	}
	whole, want = m.Crash(memfs.Everything()), pairsOf(t, db)
	full.Stop()
	check(t, db.Close())
	if err := whole.Remove("/db/RESERVE"); err != nil { // else a flush has got it
		expect(t, err, fs.ErrNotExist)
	}
	for _, name := range whole.Files() {
		if strings.HasSuffix(name, ".sst") {
			table, err := whole.ReadFile(name)
			check(t, err)
			check(t, whole.WriteFile("/db/009999.sst", append(table[:32:32], make([]byte, 256<<10)...)))
			break
		}
	}
	return whole, want
}

// largeThenFull commits a large transaction, behind whose tables no other is made: those of what was
// committed before come first, and so only the log names it. Those of transactions that found no
// space leave numbers that are nowhere.
func largeThenFull(t *testing.T, db *cairn.DB, disk *faultfs.FS) *faultfs.Handle {
	t.Helper()
	for tables := int64(0); ; tables++ {
		put(t, db, fmt.Sprint("before", tables), "1")
		full := disk.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.sst", At: tables + 1, Do: faultfs.NoSpace(), Sticky: true})
		err := db.Update(func(tx *cairn.Tx) error {
			for i := range 40 {
				if err := tx.Put(b(fmt.Sprint("tx", i)), b(strings.Repeat("x", 8<<10))); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			return full
		}
		expect(t, err, cairn.ErrNoSpace)
		full.Stop()
	}
}

// TestNothingAsideAfterClose: whatever became of the first commit after Open on a full disk, space is put aside only while
// the store is open.
func TestNothingAsideAfterClose(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	db := openAt(t, "/db", &cairn.Options{FS: m})
	put(t, db, "large", string(noise(1<<20)))
	check(t, db.Close())
	refused := 0
	for more := int64(0); more < 6<<20; more += 64 << 10 {
		full := m.Clone()
		full.SetCapacity(full.Used() + more)
		db, err := cairn.Open("/db", &cairn.Options{FS: full})
		if err != nil {
			expect(t, err, cairn.ErrNoSpace)
			continue
		}
		if err := db.Put(b("key"), noise(1<<20)); err != nil {
			expect(t, err, cairn.ErrNoSpace)
			refused++
		}
		check(t, db.Close())
		if _, err := full.ReadFile("/db/RESERVE"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d bytes free: RESERVE is there (%v)", more, err)
		}
	}
	if refused < 10 {
		t.Errorf("only %d commits were refused", refused)
	}
}

// TestOpenInSteps: a store that was killed on a full disk is opened in the space for the table of one
// memtable, which is recorded before the next one is made; wherever the power goes meanwhile, or the
// space, nothing is lost. (Open wanted the space for all of the log at once, and the store stayed shut.)
func TestOpenInSteps(t *testing.T) {
	for _, d := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		t.Run(fmt.Sprint(d), func(t *testing.T) { openInSteps(t, d) })
	}
}

func openInSteps(t *testing.T, d cairn.Durability) {
	whole, want := killedFull(t, d)
	m, more, steps, ops := leastSpace(t, whole, want)
	if steps < 3 || more > 64<<10 {
		t.Errorf("%d manifests: it went in one, or %d bytes were needed", steps, more)
	}
	cuts := cutSome(t, m, want)
	failed := failEach(t, whole, more, ops, want, syscall.EIO, vfs.ErrNoSpace)
	t.Logf("%d kB more than the store had, of %d kB: %d manifests, %d power cuts, %d failures", more>>10, whole.Used()>>10, steps, cuts, failed)
}

// TestOpenWithoutASector: what a flush has left may have taken all there was, whatever its number: before
// the manifest's (the file for the first table is made ahead of it), one the manifest knows to be taken, or
// one behind those. Open needs nothing but that. (It made a manifest first, and failed for ever.)
func TestOpenWithoutASector(t *testing.T) {
	whole, want := killedFull(t, cairn.Relaxed)
	left, err := whole.ReadFile("/db/009999.sst")
	check(t, err)
	check(t, whole.Remove("/db/009999.sst"))
	before, behind := unusedNums(t, whole)
	for _, num := range []int{before, behind, 9999} {
		m := whole.Clone()
		check(t, m.WriteFile(fmt.Sprintf("/db/%06d.sst", num), append(left[:32:32], make([]byte, 2<<20)...)))
		m, more, manifests, ops := leastSpace(t, m, want)
		if more > 0 || manifests < 3 {
			t.Errorf("left under number %d: %d bytes were needed, for %d manifests", num, more, manifests)
		}
		cuts := cutSome(t, m, want)
		t.Logf("left under number %d: %d operations, %d manifests, %d power cuts", num, ops, manifests, cuts)
	}
}

// TestClosedWithoutASector: the same of a store that was closed, and of one whose seal a power cut took: there
// a table that the manifest before may have named has to stay until there is another manifest.
func TestClosedWithoutASector(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		for _, left := range []struct {
			num           int
			older, needed bool
		}{{9999, false, false}, {1, false, false}, {9999, true, false}, {1, true, true}} {
			m := memfs.New()
			db, err := cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20})
			check(t, err)
			fillUp(t, db, "old", 20)
			want := pairsOf(t, db)
			check(t, db.Close())
			table := fmt.Sprintf("/db/%06d.sst", left.num)
			for _, name := range m.Files() {
				text, err := m.ReadFile(name)
				check(t, err)
				switch {
				case strings.HasSuffix(name, ".sst"):
					check(t, m.WriteFile(table, append(text[:32:32], make([]byte, 1<<20)...)))
				case strings.Contains(name, "MANIFEST"):
					if !sealed {
						clear(text[len(bytes.TrimRight(text, "\x00"))-20:])
						check(t, m.WriteFile(name, text))
					}
					if left.older {
						check(t, m.WriteFile("/db/MANIFEST-000001", text))
					}
				}
			}
			full, more, _, _ := leastSpace(t, m, want)
			_, err = full.Stat(table)
			if !errors.Is(err, fs.ErrNotExist) || more > 0 != (left.needed && !sealed) { // for that there has to be space
				t.Errorf("sealed %t, left %+v: %d bytes were needed; then: %v", sealed, left, more, err)
			}
			t.Logf("sealed %t, left %+v: %d power cuts", sealed, left, cutSome(t, full, want))
		}
	}
}

// unusedNums returns numbers of no file that is there: one before the manifest's, and one behind it and
// before the last segment's.
func unusedNums(t *testing.T, m *memfs.FS) (before, behind int) {
	t.Helper()
	used, first, last := map[int]bool{}, 0, 0
	for _, name := range m.Files() {
		num := 0
		switch base := filepath.Base(name); {
		case strings.HasPrefix(base, "MANIFEST-"):
			fmt.Sscanf(base, "MANIFEST-%d", &num)
			first = num
		case strings.HasSuffix(base, ".log"):
			fmt.Sscanf(base, "%d.log", &num)
			last = max(last, num)
		default:
			fmt.Sscanf(base, "%d.", &num)
		}
		used[num] = true
	}
	for num := 1; num < last; num++ {
		switch {
		case used[num]:
		case num < first:
			before = num
		case behind == 0:
			behind = num
		}
	}
	if before == 0 || behind == 0 {
		t.Fatalf("no number is unused before %d, or between that and %d: %v", first, last, m.Files())
	}
	return before, behind
}

// TestVoidFramesOnAFullDisk: a store dies while it commits, after a write error or without one, is opened
// on a full disk, and the power goes in the middle of that: what was acknowledged as durable is there. (A
// transaction whose frame was whole, but void by what a later segment says, lost its tables in the first
// step; a power cut that took the later segment's word brought the frame back.)
func TestVoidFramesOnAFullDisk(t *testing.T) {
	rounds, opened, cuts := 400, 0, 0
	if testing.Short() {
		rounds = 50
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 9))
		m, want, tried := diesAtRandom(t, r, seed%3 > 0)
		at0 := m.Journal().Len()
		if err := m.Remove("/db/RESERVE"); err != nil {
			expect(t, err, fs.ErrNotExist)
		}
		m.SetCapacity(m.Used() + int64(r.IntN(2)*r.IntN(100<<10)))
		if db, err := cairn.Open("/db", &cairn.Options{FS: m, Memory: 4 << 20}); err == nil {
			opened++
			check(t, db.Close())
		} else {
			expect(t, err, cairn.ErrNoSpace)
		}
		journal := m.Journal()
		for range 30 {
			at := at0 + r.IntN(journal.Len()-at0+1)
			one := r.IntN(len(journal.Pending(at)) + 1)
			cut := [...]memfs.Choice{memfs.SyncedOnly(), memfs.Everything(), memfs.Random(r.Uint64()), memfs.DropOne(one), memfs.KeepOne(one)}[r.IntN(5)]
			cuts++
			image := journal.State(at, cut)
			image.StopJournal()
			db, err := cairn.Open("/db", &cairn.Options{FS: image})
			if err != nil {
				t.Fatalf("seed %d, power cut at %d of %d (%v): %v", seed, at-at0, journal.Len()-at0, cut, err)
			}
			got := pairsOf(t, db)
			check(t, db.Close())
			for k, v := range want {
				if got[k] != v {
					t.Fatalf("seed %d, power cut at %d (%v): %s is missing, or another", seed, at-at0, cut, k)
				}
			}
			for k := range got {
				if !tried[k] {
					t.Fatalf("seed %d, power cut at %d (%v): %s was never put", seed, at-at0, cut, k)
				}
			}
		}
	}
	t.Logf("%d stores, %d opened on the full disk, %d power cuts", rounds, opened, cuts)
}

// diesAtRandom returns what a process leaves that made a few small and large durable commits, and was
// killed at any operation or, if broken, soon after a write of its log had failed; what was acknowledged;
// and all keys.
func diesAtRandom(t *testing.T, r *rand.Rand, broken bool) (m *memfs.FS, want map[string]string, tried map[string]bool) {
	t.Helper()
	m, want, tried = memfs.New(), map[string]string{}, map[string]bool{}
	disk := faultfs.New(m)
	opts := &cairn.Options{FS: disk, Memory: 4 << 20}
	for life := range 2 {
		db, err := cairn.Open("/db", opts)
		check(t, err)
		for i := range 20 {
			k, v := fmt.Sprint("old", life, i), strings.Repeat("v", 8<<10)
			put(t, db, k, v)
			want[k], tried[k] = v, true
		}
		check(t, db.Close())
	}
	db, err := cairn.Open("/db", opts)
	check(t, err)
	m.StartJournal()
	if !broken {
		disk.Add(faultfs.Rule{At: int64(1 + r.IntN(300)), Do: faultfs.Tear(0)})
	}
	noise := make([]byte, 6<<10)
	for i := range 1 + r.IntN(40) {
		pairs := map[string]string{}
		large := r.IntN(8) == 0
		for k := range map[bool]int{false: 1, true: 60}[large] {
			for j := 0; j < len(noise); j += 8 {
				binary.LittleEndian.PutUint64(noise[j:], r.Uint64())
			}
			pairs[fmt.Sprintf("key%03d.%02d", i, k)] = string(noise)
		}
		if large && broken && r.IntN(2) == 0 {
			disk.Add(faultfs.Rule{Kinds: faultfs.Write, Name: "*.log", At: int64(1 + r.IntN(3)), Do: faultfs.Short(1<<20, syscall.EIO)})
			disk.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log", At: int64(1 + r.IntN(4)), Do: faultfs.Tear(0)})
		}
		err := db.Update(func(tx *cairn.Tx) error {
			for k, v := range pairs {
				tried[k] = true
				if err := tx.Put([]byte(k), []byte(v)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			maps.Copy(want, pairs)
		}
	}
	db.Close()
	return m, want, tried
}

// cutSome tries one of so many power cuts of what m's journal holds, and returns how many.
func cutSome(t *testing.T, m *memfs.FS, want map[string]string) (cuts int) {
	t.Helper()
	one := 10
	if testing.Short() {
		one = 50
	}
	journal, r := m.Journal(), rand.New(rand.NewPCG(3, 4))
	for at := range journal.Len() + 1 {
		for choice := range journal.Choices(at, memfs.Plan{Random: 2}) {
			if r.IntN(one) == 0 {
				cuts++
				image := journal.State(at, choice)
				image.StopJournal()
				holds(t, image, fmt.Sprintf("power cut at %d (%v)", at, choice), want)
			}
		}
	}
	return cuts
}

// leastSpace opens a store on a disk that is full but for more bytes, the least that is enough, and
// closes it. m is that disk, whose journal is of the Open.
func leastSpace(t *testing.T, whole *memfs.FS, want map[string]string) (m *memfs.FS, more, manifests, ops int64) {
	t.Helper()
	for ; ; more += 16 << 10 {
		m = whole.Clone()
		m.SetCapacity(m.Used() + more)
		disk := faultfs.New(m)
		made, all := disk.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "MANIFEST-*"}), disk.Add(faultfs.Rule{})
		m.StartJournal()
		db, err := cairn.Open("/db", &cairn.Options{FS: disk, Memory: 4 << 20})
		manifests, ops = made.Seen(), all.Seen()
		if err != nil {
			expect(t, err, cairn.ErrNoSpace)
			m.SetCapacity(0)
			holds(t, m, fmt.Sprintf("%d bytes more", more), want)
			continue
		}
		if got := pairsOf(t, db); !maps.Equal(got, want) {
			t.Errorf("%d pairs of %d, or others", len(got), len(want))
		}
		check(t, db.Close())
		return m, more, manifests, ops
	}
}

// failEach fails each operation of such an Open in turn: the next one finds everything. It returns how
// many Opens failed.
func failEach(t *testing.T, whole *memfs.FS, more, ops int64, want map[string]string, errs ...error) (failed int) {
	t.Helper()
	step := int64(1)
	if testing.Short() {
		step = 5
	}
	for i := int64(0); i < 2*ops; i += step {
		n, sticky := i/2+1, i%2 == 1
		for _, why := range errs {
			m := whole.Clone()
			m.StopJournal()
			m.SetCapacity(m.Used() + more)
			disk := faultfs.New(m)
			disk.Add(faultfs.Rule{At: n, Sticky: sticky, Do: faultfs.Fail(why)})
			db, err := cairn.Open("/db", &cairn.Options{FS: disk, Memory: 4 << 20})
			if err == nil {
				db.Close()
				continue
			}
			failed++
			m.SetCapacity(0)
			holds(t, m, fmt.Sprintf("operation %d of %d, and all after it %t: %v", n, ops, sticky, why), want)
		}
	}
	return failed
}

// TestOpenTornInSteps: where a segment is torn, or one that was provisional is missing, and others
// stand behind it, those are never taken for the beginning of the log, whatever fails in between. (An
// empty memtable behind the end of the log moved its beginning: nothing could open the store then.)
func TestOpenTornInSteps(t *testing.T) {
	whole, _ := killedFull(t, cairn.Relaxed)
	opened := 0
	for _, name := range whole.Files() {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		for _, how := range []string{"torn", "missing"} {
			image := whole.Clone()
			text, err := image.ReadFile(name)
			check(t, err)
			written := len(bytes.TrimRight(text, "\x00"))
			clear(text[max(written-3000, 0):])
			if check(t, image.Remove(name)); how == "torn" {
				check(t, image.WriteFile(name, text))
			}
			db, err := cairn.Open("/db", &cairn.Options{FS: image.Clone(), Memory: 4 << 20})
			if err != nil {
				expect(t, err, cairn.ErrCorrupt)
				full := image.Clone()
				full.SetCapacity(full.Used())
				_, err := cairn.Open("/db", &cairn.Options{FS: full, Memory: 4 << 20})
				expect(t, err, cairn.ErrCorrupt)
				if full.Hash() != image.Hash() {
					t.Errorf("%s of %s: refused, but changed", how, name)
				}
				continue
			}
			want, dropped := pairsOf(t, db), db.Stats().Recovery.DroppedBytes
			check(t, db.Close())
			_, more, _, ops := leastSpace(t, image, want)
			failed := failEach(t, image, more, ops, want, syscall.EIO)
			t.Logf("%s %s: %d pairs, %d bytes dropped; %d failures", name, how, len(want), dropped, failed)
			opened++
		}
	}
	if opened == 0 {
		t.Error("nothing was torn")
	}
}

// TestOpenTriesNoSyncAgain: a sync of the directory that fails for want of space is final, as any other.
func TestOpenTriesNoSyncAgain(t *testing.T) {
	whole, want := killedFull(t, cairn.Durable)
	for at := int64(1); at <= 2; at++ {
		m := whole.Clone()
		disk := faultfs.New(m)
		rule := disk.Add(faultfs.Rule{Kinds: faultfs.SyncDir, At: at, Do: faultfs.Fail(vfs.ErrNoSpace)})
		_, err := cairn.Open("/db", &cairn.Options{FS: disk, Memory: 4 << 20})
		expect(t, err, cairn.ErrPoisoned)
		if n := rule.Seen(); n != at {
			t.Errorf("%d syncs of the directory, number %d failed", n, at)
		}
		holds(t, m, "the next Open", want)
	}
}

// TestOpenOfADiskFullAtTheSync: where the file system says only at a sync that it is full (delayed allocation), Open makes room as it
// does elsewhere, and if that is not enough it fails with ErrNoSpace and leaves no more than there was, as often as it is tried. (The
// sync of a manifest that nothing named yet was final: each Open left one more table, and kept what was put aside.)
func TestOpenOfADiskFullAtTheSync(t *testing.T) {
	whole, _, _ := killedUnmerged(t)
	for _, file := range []string{"MANIFEST-*", "*.tmp", "*.sst"} {
		for _, sticky := range []bool{false, true} {
			m := whole.Clone()
			m.StopJournal()
			disk := faultfs.New(m)
			rule := disk.Add(faultfs.Rule{Kinds: faultfs.Sync, Name: file, Sticky: sticky, Do: faultfs.Fail(vfs.ErrNoSpace)})
			for range 3 {
				before := m.Used()
				db, err := cairn.Open("/db", &cairn.Options{FS: disk})
				if rule.Fired() == 0 {
					t.Fatalf("%s: no sync failed", file)
				}
				if err == nil {
					wantValue(t, db, "d", string(noise(1000)))
					check(t, db.Close())
					break
				}
				if expect(t, err, cairn.ErrNoSpace); !sticky || m.Used() > before {
					t.Errorf("%s, sticky %t: %v; %d bytes more are left: %q", file, sticky, err, m.Used()-before, m.Files())
				}
			}
			disk.Heal()
			db, err := cairn.Open("/db", &cairn.Options{FS: disk})
			check(t, err)
			wantValue(t, db, "d", string(noise(1000)))
			check(t, db.Close())
		}
	}
}
