package metamorphic

import (
	"slices"

	"github.com/cairndb/cairn"
	"github.com/cairndb/cairn/vfs/memfs"
)

// remains are what a kill or a power cut has left.
type remains struct {
	disk  *memfs.FS
	what  string
	least []int64 // of each actor's history, the oldest state it may be

	began, ended int64 // when that was done, by the world's clock
}

// end kills the store, or cuts the power, on a copy of its disk.
func (w *world) end() *remains {
	left := &remains{what: "killed", began: w.clock.Add(1)}
	defer func() { left.ended = w.clock.Add(1) }()
	kill := w.r.IntN(2) == 0
	for _, a := range w.actors {
		if kill {
			left.least = append(left.least, a.acked.Load())
		} else {
			left.least = append(left.least, a.durable.Load())
		}
	}
	if kill {
		w.kills.Add(1)
		left.disk = w.ram.Clone()
		return left
	}
	w.cuts.Add(1)
	choice := memfs.Random(w.r.Uint64())
	switch w.r.IntN(4) {
	case 0:
		choice = memfs.SyncedOnly()
	case 1:
		choice = memfs.Everything()
	}
	left.what = "power cut, " + choice.String()
	left.disk = w.ram.Crash(choice)
	return left
}

// look opens what is left and compares it with what was promised.
func (w *world) look(left *remains) {
	db, err := cairn.Open(w.dir, &cairn.Options{FS: left.disk, Memory: w.memory})
	if err != nil {
		failf("open (%s): %v", left.what, err)
	}
	w.judge(db, left.what, left)
	if err := db.Close(); err != nil {
		failf("close (%s): %v", left.what, err)
	}
}

// goOn goes on with what is left.
func (w *world) goOn(left *remains) {
	for _, a := range w.actors {
		for _, t := range a.txs {
			_ = t.x.Rollback()
		}
		a.txs = nil
	}
	if w.reader != nil {
		_ = w.reader.Close()
		w.reader = nil
	}
	_ = w.db.Close() // on the disk that is no more
	w.on(left.disk)
	w.faulty.Store(false)
	w.open()
	found := w.judge(w.db, left.what, left)
	for i, a := range w.actors {
		if found[i] == len(a.history) {
			a.restart(a.unknown[0])
		} else {
			a.restart(a.history[found[i]].node)
		}
	}
}

// judge compares what is in a store, or was left, with what each actor has written: it has to be a
// state of its history, the last or from least on, what an unknown commit made of the last, or what one that was under way then,
// and failed later, made of one of them.
func (w *world) judge(db *cairn.DB, what string, left *remains) (found []int) {
	for i, a := range w.actors {
		from := len(a.history) - 1
		if left != nil {
			from = int(left.least[i])
		}
		sum, rows := a.contents(db, what)
		at := -1
		for j := len(a.history) - 1; j >= from; j-- {
			if a.history[j].digest() == sum && a.history[j].len() == rows {
				at = j
				break
			}
		}
		if at < 0 && len(a.unknown) > 0 && a.unknown[0].digest() == sum {
			if at = len(a.history); left == nil {
				a.root = a.unknown[0]
			}
		}
		for _, f := range a.failed {
			if at < 0 && left != nil && f.of >= from && f.began < left.ended && f.ended > left.began && f.digest() == sum && f.len() == rows {
				at = f.of
			}
		}
		if at < 0 {
			for j := range a.history {
				if a.history[j].digest() == sum {
					failf("%s: actor %d of %d: the state is number %d, of %d to %d", what, i, len(w.actors), j, from, len(a.history)-1)
				}
			}
			err := a.whatever(db)
			failf("%s: actor %d of %d: %d rows are no state from %d to %d (%d rows in the last); %v", what, i, len(w.actors), rows, from, len(a.history)-1, a.root.len(), err)
		}
		found = append(found, at)
	}
	w.judgeOrder(what, found)
	return found
}

// judgeOrder: of commits that came one after the other, whoever made them, the second is not there without
// the first.
func (w *world) judgeOrder(what string, found []int) {
	for i, a := range w.actors {
		if found[i]+1 >= len(a.history) {
			continue
		}
		lost := a.history[found[i]+1]
		for j, b := range w.actors {
			if found[j] == len(b.history) {
				continue
			}
			sum := b.history[found[j]].digest()
			at := slices.IndexFunc(b.history, func(s state) bool { return s.digest() == sum }) // the oldest that it can be
			if b.history[at].began > lost.ended {
				failf("%s: commit %d of actor %d is lost, and commit %d of actor %d, which came after it, is not", what, found[i]+1, i, at, j)
			}
		}
	}
}

// contents returns the sum of the actor's pairs and their number.
func (a *actor) contents(db *cairn.DB, what string) (sum uint64, rows int) {
	for {
		sum, rows = 0, 0
		err := db.View(func(x *cairn.Tx) error {
			for k, v := range x.Scan(a.lendRange(a.whole)) {
				sum += pairHash(string(k), string(v))
				rows++
			}
			return x.Err()
		})
		if err == nil {
			return sum, rows
		}
		a.excuse(what, err)
		a.w.heal()
	}
}
