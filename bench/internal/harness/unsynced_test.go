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

func TestUnsyncedDeletesOfRocksDBDoNotSync(t *testing.T) {
	d, err := engine.Find(laxRocksDB)
	if err != nil {
		t.Skip("this build has no RocksDB")
	}
	r := &runner{root: t.TempDir(), plan: &Plan{}}
	seen, err := r.probe(t.Context(), d, true)
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]result.Class{}
	for _, s := range seen {
		if s.Class == result.NotCounted {
			t.Skip("calls cannot be counted here: ", s.Why)
		}
		classes[s.Kind] = s.Class
	}
	if classes[string(workload.PutCommits)] != result.EveryCommit || classes[string(workload.DeleteCommits)] != result.NoCommit {
		t.Errorf("%v: want synced puts and deletes that are not", classes)
	}
}
