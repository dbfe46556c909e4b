package result

import (
	"strings"
	"testing"
)

func TestFaultOnlyWhereASyncWasAskedForAndIsMissing(t *testing.T) {
	for _, c := range []struct {
		sync  bool
		class Class
		fault bool
	}{
		{true, EveryCommit, false}, {true, Grouped, false}, {true, SomeCommits, true}, {true, NoCommit, true}, {true, NotCounted, false},
		{false, NoCommit, false}, {false, SomeCommits, false},
	} {
		d := Durability{Sync: c.sync, Class: c.class, Commits: 9, Kind: "put"}
		if got := d.Fault(); (got != "") != c.fault {
			t.Errorf("sync %v, %s: fault %q", c.sync, c.class, got)
		}
	}
}

func TestSumTakesTheWorst(t *testing.T) {
	sum := Sum([]Durability{
		{Sync: true, Kind: "put", Class: EveryCommit, Commits: 5, Syncs: 6},
		{Sync: true, Kind: "batch", Class: SomeCommits, Commits: 4, Durable: 1, Syncs: 1},
		{Sync: true, Kind: "shared", Class: Grouped, Commits: 8, Syncs: 2},
	})
	if sum.Class != SomeCommits || sum.Commits != 17 || sum.Syncs != 9 || !strings.Contains(sum.Fault, "4 commits (batch) and synced only 1") {
		t.Errorf("%+v", sum)
	}
	if Sum(nil) != nil {
		t.Error("a sum of nothing")
	}
}
