package harness

import (
	"testing"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// laxRocksDB is RocksDB with unsynced deletes, to count what they sync.
const laxRocksDB = "rocksdb with unsynced deletes"

type laxStore struct{ engine.Store }

func (s laxStore) Delete(key []byte) error {
	return s.Store.(engine.UnsyncedDeleter).DeleteUnsynced(key)
}

func registerLaxRocksDB() {
	d, err := engine.Find("rocksdb")
	if err != nil || d.Info.Absent != "" {
		return
	}
	open := d.Open
	d.Info = engine.Info{Name: laxRocksDB, Title: fakeTitle, Native: true, Cannot: map[engine.Ability]string{
		engine.CanBatch: "not looked at here", engine.CanShare: "not looked at here",
	}}
	d.Open = func(dir string, o engine.Options) (engine.Store, error) {
		s, err := open(dir, o)
		return laxStore{s}, err
	}
	engine.Register(d)
}

// shortOnly is a store that keeps long values in memory only.
const shortOnly = "cairn with short values only"

type shortStore struct{ engine.Store }

func (s shortStore) Put(key, value []byte) error {
	if len(value) >= 1000 {
		return nil
	}
	return s.Store.Put(key, value)
}

func registerShortOnly() {
	d, err := engine.Find("cairn")
	if err != nil {
		panic(err)
	}
	open := d.Open
	d.Info = engine.Info{Name: shortOnly, Title: fakeTitle, Cannot: map[engine.Ability]string{
		engine.CanBatch: "not looked at here", engine.CanShare: "not looked at here",
	}}
	d.Open = func(dir string, o engine.Options) (engine.Store, error) {
		s, err := open(dir, o)
		return shortStore{s}, err
	}
	engine.Register(d)
}

func TestUnsyncedDeletesOfRocksDBDoNotSync(t *testing.T) {
	d, err := engine.Find(laxRocksDB)
	if err != nil {
		t.Skip("this build has no RocksDB")
	}
	classes := classesOf(t, d)
	if classes[workload.PutCommits] != result.EveryCommit || classes[workload.DeleteCommits] != result.NoCommit {
		t.Errorf("%v: want synced puts and deletes that are not", classes)
	}
}

// TestLongValuesAreCounted: an engine is not durable because short values are.
func TestLongValuesAreCounted(t *testing.T) {
	d, err := engine.Find(shortOnly)
	if err != nil {
		t.Fatal(err)
	}
	if classes := classesOf(t, d); classes[workload.PutCommits] != result.SomeCommits || classes[workload.DeleteCommits] != result.EveryCommit {
		t.Errorf("%v: want deletes that are synced, and some puts", classes)
	}
}

// TestSyncOffIsOff: what is asked not to sync its commits does not sync the growth of its file
// within them either. The probe's values make a file grow several times. These are the engines
// without a background, which may sync what it has merged whenever it likes.
func TestSyncOffIsOff(t *testing.T) {
	for _, name := range []string{"boltdb", "bbolt", "lmdb", "tokyo-hash", "tokyo-btree"} {
		d, err := engine.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Info.Absent != "" {
			continue
		}
		for _, s := range probed(t, d, false) {
			if s.Class != result.NoCommit || s.Syncs != 0 {
				t.Errorf("%s, asked for no syncs: %d of %d commits (%s) are synced, %d calls", name, s.Durable, s.Commits, s.Kind, s.Syncs)
			}
		}
	}
}

func classesOf(t *testing.T, d engine.Driver) map[workload.CommitKind]result.Class {
	t.Helper()
	classes := map[workload.CommitKind]result.Class{}
	for _, s := range probed(t, d, true) {
		classes[workload.CommitKind(s.Kind)] = s.Class
	}
	return classes
}

func probed(t *testing.T, d engine.Driver, sync bool) []result.Durability {
	t.Helper()
	r := &runner{root: t.TempDir(), plan: &Plan{}}
	seen, err := r.probe(t.Context(), d, sync)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range seen {
		if s.Class == result.NotCounted {
			t.Skip("calls cannot be counted here: ", s.Why)
		}
	}
	return seen
}
