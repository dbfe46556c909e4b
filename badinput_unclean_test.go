package cairn_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/faultfs"
	"github.com/cairndb/cairn/vfs/memfs"
)

// unclean opens a store and copies its files, all at one instant, to a directory, as
// a killed process leaves them.
type unclean struct {
	*cairn.DB
	fs *memfs.FS
}

func openUnclean(t testing.TB, opts cairn.Options) unclean {
	t.Helper()
	m := memfs.New()
	m.StopJournal()
	opts.FS = m
	return unclean{openAt(t, "/db", &opts), m}
}

func (u unclean) kill(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	disk := u.fs.Clone()
	for _, name := range disk.Files() {
		data, err := disk.ReadFile(name)
		check(t, err)
		check(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o644))
	}
	return dir
}

// TestReadOnly: a read-only store of an unclean end is recovered in memory, refuses
// all writes, and changes no byte.
func TestReadOnly(t *testing.T) {
	open := openUnclean(t, cairn.Options{Durability: cairn.Relaxed, Memory: 1 << 20})
	for i := range 3000 {
		put(t, open.DB, fmt.Sprintf("key%04d", i), fmt.Sprintf("%0300d", i))
	}
	check(t, open.Delete(b("key0007")))
	check(t, open.Update(func(tx *cairn.Tx) error {
		return tx.DeleteRange(cairn.Range{Low: b("key0010"), High: b("key0020")})
	}))
	dir := open.kill(t)
	before := contents(t, dir)
	for range 2 {
		db := openAt(t, dir, &cairn.Options{ReadOnly: true})
		if s := db.Stats(); s.Recovery.Duration == 0 || s.Recovery.DroppedBytes != 0 {
			t.Errorf("recovery: %+v", s.Recovery)
		}
		second := openAt(t, dir, &cairn.Options{ReadOnly: true}) // beside another
		wantValue(t, second, "key2999", fmt.Sprintf("%0300d", 2999))
		check(t, second.Close())
		refusesWrites(t, db)
		check(t, db.View(func(tx *cairn.Tx) error {
			if n := len(keysOf(tx, cairn.Range{})); n != 3000-11 {
				t.Errorf("%d keys", n)
			}
			return nil
		}))
		wantValue(t, db, "key0007", "")
		wantValue(t, db, "key2999", fmt.Sprintf("%0300d", 2999))
		_, err := db.Verify(t.Context())
		check(t, err)
		check(t, db.Close())
		unchanged(t, dir, before)
	}
}

func refusesWrites(t *testing.T, db *cairn.DB) {
	t.Helper()
	batch := cairn.NewBatch()
	batch.Put(b("x"), nil)
	_, begin := db.Begin(true)
	for name, err := range map[string]error{
		"Put":            db.Put(b("x"), nil),
		"Delete":         db.Delete(b("x")),
		"Write":          db.Write(batch),
		"Begin":          begin,
		"Sync":           db.Sync(),
		"Update":         db.Update(func(tx *cairn.Tx) error { return nil }),
		"Compact":        db.Compact(t.Context(), cairn.Range{}),
		"Tx.Put of View": db.View(func(tx *cairn.Tx) error { return tx.Put(b("x"), nil) }),
	} {
		if !errors.Is(err, cairn.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMissingLogSegment: a log that misses a segment is damaged, not torn, wherever
// the segment stood.
func TestMissingLogSegment(t *testing.T) {
	open := openUnclean(t, cairn.Options{Durability: cairn.Relaxed, Memory: 64 << 20})
	for i := range 3000 {
		put(t, open.DB, fmt.Sprintf("key%04d", i), fmt.Sprintf("%0300d", i))
	}
	dir := open.kill(t)
	missed := 0
	eachFile(t, dir, func(name, _ string) {
		if filepath.Ext(name) != ".log" {
			return
		}
		check(t, os.Remove(name))
		err := openError(t, dir, &cairn.Options{ReadOnly: true})
		if err == nil { // one that the manifest no longer needs
			return
		}
		missed++
		expect(t, err, cairn.ErrCorrupt)
		if !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%v does not name %s", err, filepath.Base(name))
		}
	})
	if missed == 0 {
		t.Error("no segment was missed")
	}
}

// TestManifestOfAnEarlierClose: where what closed a store lies beside a log that was written since, it is an older one, put back.
// Nothing is changed. A segment without a commit is what an Open that was interrupted has left.
func TestManifestOfAnEarlierClose(t *testing.T) {
	for _, durability := range []cairn.Durability{cairn.Durable, cairn.Relaxed} {
		open := openUnclean(t, cairn.Options{Durability: durability})
		put(t, open.DB, "a", "1")
		check(t, open.Close())
		closed := open.fs.Clone()
		again := unclean{openAt(t, "/db", &cairn.Options{FS: open.fs, Durability: durability}), open.fs}
		put(t, again.DB, "b", "2")
		dir := again.kill(t)
		for _, name := range closed.Files() {
			if base := filepath.Base(name); base == "CURRENT" || strings.HasPrefix(base, "MANIFEST") {
				data, err := closed.ReadFile(name)
				check(t, err)
				check(t, os.WriteFile(filepath.Join(dir, base), data, 0o644))
			}
		}
		before := contents(t, dir)
		for _, readOnly := range []bool{true, false} {
			expect(t, openError(t, dir, &cairn.Options{ReadOnly: readOnly}), cairn.ErrCorrupt)
			lock := filepath.Join(dir, "LOCK") // which says who has it
			before[lock] = contents(t, dir)[lock]
			unchanged(t, dir, before)
		}
		logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
		check(t, err)
		for _, name := range logs {
			check(t, os.Truncate(name, 64)) // the header
		}
		for _, readOnly := range []bool{true, false} {
			check(t, openError(t, dir, &cairn.Options{ReadOnly: readOnly}))
		}
	}
}

// TestDamagedLogSegment: the error names the file that is damaged, and where what is whole of it ends.
func TestDamagedLogSegment(t *testing.T) {
	m := memfs.New()
	m.StopJournal()
	disk := faultfs.New(m)
	disk.Add(faultfs.Rule{Kinds: faultfs.Create, Name: "*.sst", Sticky: true, Do: faultfs.Fail(syscall.EIO)}) // no table takes the place of a segment
	open := unclean{openAt(t, "/db", &cairn.Options{FS: disk, Memory: 64 << 20}), m}
	for i := range 3000 {
		put(t, open.DB, fmt.Sprintf("key%04d", i), fmt.Sprintf("%0300d", i))
	}
	dir := open.kill(t)
	disk.Heal()
	found := 0
	eachFile(t, dir, func(name, _ string) {
		content, err := os.ReadFile(name)
		check(t, err)
		end := len(bytes.TrimRight(content, "\x00"))
		if filepath.Ext(name) != ".log" || end < 10_000 {
			return
		}
		content[end/2]++
		check(t, os.WriteFile(name, content, 0o644))
		err = openError(t, dir, &cairn.Options{ReadOnly: true})
		if err == nil { // one that the manifest no longer needs
			return
		}
		found++
		var damage *cairn.CorruptionError
		if !errors.As(err, &damage) || filepath.Base(damage.File) != filepath.Base(name) || damage.Offset > int64(end/2) || damage.Offset < int64(end/2)-1000 {
			t.Errorf("%s was changed at %d: %v", name, end/2, err)
		}
	})
	if found < 2 {
		t.Errorf("damage of %d segments was found", found)
	}
}

// TestClosedBesideLogsOfOthers: a store that was closed is opened beside files with names of logs, however large, and whoever may
// read them, in which there is nothing of it.
func TestClosedBesideLogsOfOthers(t *testing.T) {
	for what, data := range map[string][]byte{"no log": b("2026-11-30 a log of others\n"), "of one byte": {0}, "large": nil} {
		m := memfs.New()
		m.StopJournal()
		f := faultfs.New(m)
		o := &cairn.Options{FS: f, Memory: 1 << 20}
		db, err := cairn.Open("/db", o)
		check(t, err)
		check(t, db.Put(b("key"), b("value")))
		check(t, db.Close())
		check(t, m.WriteFile("/db/000777.log", data))
		if data == nil {
			file, err := m.OpenReadWrite("/db/000777.log")
			check(t, err)
			_, err = file.WriteAt([]byte{0}, 3<<30)
			check(t, err)
			check(t, file.Close())
		} else if len(data) > 1 {
			f.Add(faultfs.Rule{Kinds: faultfs.Open, Name: "000777.log", Sticky: true, Do: faultfs.Fail(fs.ErrPermission)})
		}
		read := f.Add(faultfs.Rule{Kinds: faultfs.Read, Name: "000777.log"})
		for _, o.ReadOnly = range []bool{true, false} {
			if db, err = cairn.Open("/db", o); err != nil {
				t.Errorf("%s, read-only %v: %v", what, o.ReadOnly, err)
				continue
			}
			wantValue(t, db, "key", "value")
			check(t, db.Close())
		}
		if n := read.Seen(); n > 10 {
			t.Errorf("%s: read %d times", what, n)
		}
	}
}

// killedUnmerged is a store that was killed, with a table, three commits in a log, which ends at the given offset, and space put aside.
// It is made anew where it came to rest before that.
func killedUnmerged(t *testing.T) (m *memfs.FS, log string, end int64) {
	t.Helper()
	for range 100 {
		open := openUnclean(t, cairn.Options{})
		put(t, open.DB, "a", string(noise(1<<20)))
		check(t, open.Close())
		open.DB = openAt(t, "/db", &cairn.Options{FS: open.fs})
		put(t, open.DB, "b", string(noise(300<<10)))
		put(t, open.DB, "c", string(noise(1000)))
		put(t, open.DB, "d", string(noise(1000)))
		m = open.fs.Clone()
		for _, name := range m.Files() {
			data, err := m.ReadFile(name)
			check(t, err)
			if n := len(bytes.TrimRight(data, "\x00")); strings.HasSuffix(name, ".log") && n > 300<<10+2000 {
				log, end = name, int64(n)
			}
		}
		if _, err := m.Stat("/db/RESERVE"); err == nil && log != "" {
			return m, log, end
		}
	}
	t.Fatal("no store was killed before it came to rest")
	return nil, "", 0
}

// TestDroppedUntilWritten: every Open tells what was dropped of the log, until the store has been written to and closed. (It
// was forgotten where a merge alone had made a manifest.)
func TestDroppedUntilWritten(t *testing.T) {
	m, log, end := killedUnmerged(t)
	check(t, m.Corrupt(log, end-500, 1))
	var first cairn.RecoveryStats
	for i, use := range []func(*cairn.DB) error{
		func(db *cairn.DB) error { return nil },
		func(db *cairn.DB) error { return db.Compact(t.Context(), cairn.Range{}) }, // if it was not merged before
		func(db *cairn.DB) error { return db.Delete(b("none")) },
		func(db *cairn.DB) error { return nil },
	} {
		db := openAt(t, "/db", &cairn.Options{FS: m})
		got := db.Stats().Recovery
		got.Duration = 0
		if i == 0 {
			first = got
		}
		if last := i == 3; !last && got != first || last && got.DroppedBytes != 0 || first.DroppedBytes == 0 {
			t.Errorf("Open %d tells of %+v, the first of %+v", i, got, first)
		}
		check(t, use(db))
		check(t, db.Close())
	}
}

// TestRefusedKeepsAside: where Open finds damage in the log it has given nothing of what was put aside, on a full disk neither, on
// which a store that is whole is opened with that. (It was removed before the log was read.)
func TestRefusedKeepsAside(t *testing.T) {
	whole, log, end := killedUnmerged(t)
	for what, at := range map[string]int64{"whole": 0, "the header": 20, "before a durable mark": end - 1500} {
		for _, full := range []bool{false, true} {
			m := whole.Clone()
			if at > 0 {
				check(t, m.Corrupt(log, at, 1))
			}
			if full {
				m.SetCapacity(m.Used())
			}
			before := m.Hash()
			db, err := cairn.Open("/db", &cairn.Options{FS: m})
			if at > 0 {
				expect(t, err, cairn.ErrCorrupt)
				if m.Hash() != before {
					t.Errorf("damage %s, full %v: something has changed; there are %q", what, full, m.Files())
				}
				continue
			}
			check(t, err)
			wantValue(t, db, "d", string(noise(1000)))
			check(t, db.Close())
		}
	}
}
