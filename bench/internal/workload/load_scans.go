package workload

import (
	"fmt"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

func (l *load) walkKeys() error {
	walker, ok := l.store.(engine.KeyWalker)
	if !ok {
		l.rec.None(l.d.Info.Cannot[engine.CanKeys], "keys")
		return nil
	}
	return l.rec.Reads("keys", l.n, loadReads, func() error {
		w := l.newWalk(l.d.Info.Can(engine.CanOrder))
		return w.end(walker.Keys(w.key))
	})
}

func (l *load) walkPairs() error {
	walker, ok := l.store.(engine.PairWalker)
	if !ok {
		l.rec.None(l.d.Info.Cannot[engine.CanPairs], "pairs")
		return nil
	}
	return l.rec.Reads("pairs", l.n, loadReads, func() error {
		w := l.newWalk(l.d.Info.Can(engine.CanOrder))
		return w.end(walker.Pairs(w.pair))
	})
}

func (l *load) walkRanges() error {
	scanner, ok := l.store.(engine.Scanner)
	if !ok {
		l.rec.None(l.d.Info.Cannot[engine.CanScan], "range")
		return nil
	}
	chooser, err := data.NewChooser(data.Uniform, l.n, 0, l.p.Seed, 14)
	if err != nil {
		return err
	}
	from := chooser.Draw(loadRanges(l.n))
	return l.rec.Reads("range", len(from), loadReads, func() error {
		for _, id := range from {
			if err := l.scanFrom(scanner, int(id), loadRange); err != nil {
				return err
			}
		}
		return nil
	})
}

// scanFrom reads up to n pairs from key id on: these, in order, and no others.
func (e *expectation) scanFrom(scanner engine.Scanner, id, n int) error {
	next := id
	err := scanner.Scan(e.keys.At(id), n, func(key, value []byte) error {
		at, ok := e.keys.ID(key)
		if !ok || at != uint64(next) {
			return wrong("scan from key %d: %q in place of key %d", id, key, next)
		}
		next++
		return e.compare(at, value)
	})
	if err != nil {
		return fmt.Errorf("scan: %w", err)
	}
	if want := min(id+n, e.n); next != want {
		return wrong("scan from key %d: %d pairs, want %d", id, next-id, want-id)
	}
	return nil
}
