package syncs

import "testing"

func TestOnlyASyncWithinACommitMakesItDurable(t *testing.T) {
	y := newTally()
	sync := func() { y.syncEnds(y.syncBegins("fsync")) }
	sync() // before any commit
	y.begin(1, 1)
	y.end(1) // none
	y.begin(1, 2)
	sync()
	y.end(2)
	y.begin(1, 3) // the sync outlives the acknowledgement
	late := y.syncBegins("fsync")
	y.end(3)
	y.begin(1, 4) // and is too early for this one
	y.syncEnds(late)
	y.end(4)
	y.end(99)
	if got := y.report.Kinds[1]; got != (Count{Commits: 4, Durable: 1, Syncs: 2}) {
		t.Errorf("%+v", got)
	}
	if y.report.Outside != 1 || y.report.Calls["fsync"] != 3 || y.report.Total() != 3 {
		t.Errorf("%+v", y.report)
	}
}

func TestOneSyncServesSeveralCommits(t *testing.T) {
	y := newTally()
	y.begin(2, 1)
	y.begin(2, 2)
	y.begin(3, 3)
	y.syncEnds(y.syncBegins("fdatasync"))
	y.end(1)
	y.end(2)
	y.end(3)
	if got := y.report.Kinds[2]; got != (Count{Commits: 2, Durable: 2, Syncs: 1}) {
		t.Errorf("%+v", got)
	}
	if got := y.report.Kinds[3]; got != (Count{Commits: 1, Durable: 1, Syncs: 1}) {
		t.Errorf("%+v", got)
	}
}
