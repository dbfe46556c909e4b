package engine_test

import (
	"testing"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/internal/engine"
	"github.com/cairndb/cairn/internal/histories"
	"github.com/cairndb/cairn/vfs/memfs"
)

// TestCheckersNoticeMissingValidation: with validation off the workload that the
// root package's TestSerializable runs shows an anomaly within 10,000 transactions.
func TestCheckersNoticeMissingValidation(t *testing.T) {
	engine.SkipValidation(true)
	defer engine.SkipValidation(false)
	for seed := range uint64(5) {
		m := memfs.New()
		m.StopJournal()
		db, err := cairn.Open("/db", &cairn.Options{FS: m, Durability: cairn.Relaxed, Memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		res, err := histories.Run(db, histories.Config{Transactions: 10_000, Workers: 8, Cells: 16, Seed: seed, Round: 500})
		if err == nil {
			t.Errorf("seed %d: no anomaly in %v", seed, res)
		}
		t.Logf("seed %d: %d transactions passed, then: %v", seed, res.Committed, err)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
