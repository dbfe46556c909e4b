package workload

import (
	"math/rand/v2"

	"github.com/cairndb/cairn/bench/internal/data"
)

// ycsbMix is one of the workloads A to F: shares in percent, the rest are reads.
type ycsbMix struct {
	name, key                    string
	update, modify, insert, scan int
	latest                       bool
}

// ycsbMixes in the order they are run: those that do not grow the store first, as
// YCSB recommends. YCSB loads anew before E; here E has D's inserts too.
var ycsbMixes = []ycsbMix{
	{name: "A", key: "a", update: 50},
	{name: "B", key: "b", update: 5},
	{name: "C", key: "c"},
	{name: "F", key: "f", modify: 50},
	{name: "D", key: "d", insert: 5, latest: true},
	{name: "E", key: "e", insert: 5, scan: 95},
}

// ops is how many operations the workload has on a set of n records: small sets are gone
// over several times, for what takes a few milliseconds cannot be timed; of scans, each of
// which is fifty reads, there are fewer.
func (m ycsbMix) ops(n int) int {
	if m.scan > 0 {
		return min(max(1, n/2), mostYCSBScans)
	}
	if n < fewRecords {
		return n
	}
	return min(3*n, mostYCSBOps)
}

const (
	mostYCSBOps   = 200_000
	mostYCSBScans = 50_000
	// fewRecords are not timed but tried: with more operations every record that a store
	// has lost would be written again before somebody reads it.
	fewRecords = 1000
)

type ycsbKind uint8

const (
	ycsbRead ycsbKind = iota
	ycsbReadLatest
	ycsbUpdate
	ycsbModify
	ycsbInsert
	ycsbScan
)

// longestScan is the greatest length of a scan, in records; the least is 1.
const longestScan = 100

// ycsbOp is one operation. The id is of a record loaded, or how far back from the
// latest.
type ycsbOp struct {
	id     int32
	length uint8
	kind   ycsbKind
}

// drawYCSB draws a list of operations for each goroutine and counts the inserts.
func drawYCSB(m ycsbMix, p Params, purpose uint64) (lists [][]ycsbOp, inserts int, err error) {
	goroutines := max(1, p.Goroutines)
	dist := data.Scrambled
	if m.latest {
		dist = data.Zipf
	}
	for g := range goroutines {
		// The popular records are the same for all: scrambled by one seed.
		chooser, err := data.NewChooser(dist, p.N, ycsbTheta(p), p.Seed, 19)
		if err != nil {
			return nil, 0, err
		}
		rng := rand.New(rand.NewPCG(p.Seed, purpose+uint64(g)))
		chooser.Reseed(rng)
		share := m.ops(p.N) * (g + 1) / goroutines
		share -= m.ops(p.N) * g / goroutines
		list := make([]ycsbOp, share)
		for i := range list {
			list[i] = m.draw(rng, chooser)
			if list[i].kind == ycsbInsert {
				inserts++
			}
		}
		lists = append(lists, list)
	}
	return lists, inserts, nil
}

func (m ycsbMix) draw(rng *rand.Rand, chooser *data.Chooser) ycsbOp {
	op := ycsbOp{id: chooser.Next(), length: uint8(1 + rng.IntN(longestScan))}
	u := rng.IntN(100)
	for _, share := range []struct {
		percent int
		kind    ycsbKind
	}{{m.update, ycsbUpdate}, {m.modify, ycsbModify}, {m.insert, ycsbInsert}, {m.scan, ycsbScan}} {
		if u < share.percent {
			op.kind = share.kind
			return op
		}
		u -= share.percent
	}
	if m.latest {
		op.kind = ycsbReadLatest
	}
	return op
}
