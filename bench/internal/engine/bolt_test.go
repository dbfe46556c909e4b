package engine

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boltdb/bolt"
	"go.etcd.io/bbolt"
)

// Of several goroutines that put, each waiting for its sync, commits are shared as the
// READMEs of both show; one goroutine has no others to wait for.
func TestBoltSharesCommitsOfSeveralWriters(t *testing.T) {
	for _, name := range []string{"bbolt", "boltdb"} {
		if raceEnabled && name == "boltdb" {
			continue // its pointer arithmetic fails the checks that -race turns on
		}
		d, err := Find(name)
		check(t, err)
		for _, opts := range []Options{{Sync: true, Writers: 4}, {Sync: true, Writers: 1}, {Sync: true}, {Writers: 4}} {
			const puts = 40
			s := openTest(t, d, opts)
			before, errs := boltCommits(t, s), make([]error, 4)
			var all sync.WaitGroup
			for g := range errs {
				all.Go(func() {
					for i := g; i < puts; i += len(errs) {
						errs[g] = errors.Join(errs[g], s.Put(testKey(i), testValue(i)))
					}
				})
			}
			all.Wait()
			check(t, errors.Join(errs...))
			shared := opts.Sync && opts.Writers > 1
			if made := boltCommits(t, s) - before; shared != (made < puts) {
				t.Errorf("%s, %+v: %d commits of %d puts", name, opts, made, puts)
			}
			for i := range puts {
				check(t, s.Get(testKey(i), func(got []byte) error {
					if !bytes.Equal(got, testValue(i)) {
						t.Errorf("%s, %+v: key %d has another value", name, opts, i)
					}
					return nil
				}))
			}
			said := slices.ContainsFunc(d.Settings(opts), func(s Setting) bool { return strings.Contains(s.Option, "DB.Batch") })
			if said != shared {
				t.Errorf("%s, %+v: that commits are shared is among its settings: %v", name, opts, said)
			}
		}
	}
}

// boltCommits is the number of the last commit.
func boltCommits(t *testing.T, s Store) (last int) {
	t.Helper()
	if b, ok := s.(boltdbStore); ok {
		check(t, b.db.View(func(tx *bolt.Tx) error { last = tx.ID(); return nil }))
		return last
	}
	check(t, s.(bboltStore).db.View(func(tx *bbolt.Tx) error { last = tx.ID(); return nil }))
	return last
}

// To open a store that is there is no commit: its file stays as it is.
func TestABoltStoreIsOpenedAgainWithoutACommit(t *testing.T) {
	for name, file := range map[string]string{"bbolt": "bbolt.db", "boltdb": "bolt.db"} {
		if raceEnabled && name == "boltdb" {
			continue // its pointer arithmetic fails the checks that -race turns on
		}
		d, err := Find(name)
		check(t, err)
		dir := t.TempDir()
		s, err := d.Open(dir, Options{Sync: true})
		check(t, err)
		check(t, s.Put(testKey(3), testValue(3)))
		check(t, s.Close())
		before, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		s, err = d.Open(dir, Options{Sync: true})
		check(t, err)
		check(t, s.Get(testKey(3), func([]byte) error { return nil }))
		check(t, s.Close())
		after, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		if !bytes.Equal(before, after) {
			t.Errorf("%s: a store that was opened and read has another file", name)
		}
	}
}
