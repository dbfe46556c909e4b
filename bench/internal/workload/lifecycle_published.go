package workload

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "w1",
		Title:      "W1 lifecycle, as published: one value for all keys; keys alone are iterated",
		Variant:    "published",
		QuickN:     []int{2_000},
		FullN:      []int{10_000, 100_000},
		ValueBytes: 4096,
		Unfit:      asPublished,
		Conditions: lifecyclePublishedConditions,
		Columns:    lifecyclePublishedColumns,
		Estimate:   lifecycleEstimate,
		Run:        runLifecyclePublished,
		Article:    []string{"boltdb", "rocksdb", "pebble", "badger"},

		UnsyncedDeletes: laxInTheArticle,
	})
}

// laxInTheArticle is the engine whose deletes the article did not sync.
const laxInTheArticle = "rocksdb"

var lifecyclePublishedColumns = []result.Column{
	{Key: "put", Title: "put seq", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "get", Title: "get rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "delete", Title: "delete rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "put2", Title: "put rnd", Group: "time", Unit: result.NanosPerOp, Ranked: true, Writes: true},
	{Key: "keys", Title: "iterate keys", Group: "time", Unit: result.NanosPerOp, Ranked: true},
	{Key: "total", Title: "total", Group: "space", Unit: result.Nanos, Ranked: true, Writes: true},
	{Key: "disk", Title: "disk apparent", Group: "space", Unit: result.Bytes, Ranked: true},
	{Key: "disk_allocated", Title: "disk allocated", Group: "space", Unit: result.Bytes, Ranked: true},
}

func lifecyclePublishedConditions(p Params) []string {
	return []string{
		fmt.Sprintf("one goroutine; %d sequential puts, random gets, random deletes, random puts, then all keys without values", p.N),
		fmt.Sprintf("one value of %d random letters and digits for every key, in both rounds of puts", p.ValueBytes),
		"every put and every delete is a commit of its own" + syncCondition(p.Sync) + "; RocksDB's deletes are not synced, as in the article (4 us each cannot have been)",
		"total = open, the five phases and close, as in the article; sizes are taken after close",
		"the article draws its random keys with repetition: some 37 % of its deletes find nothing, and its store ends with 77 % of the keys; here each key comes once, so that every engine does the same and every answer can be checked",
		"the article's Badger reads values ahead while it iterates; here every engine iterates keys in its documented way",
		"unsound: a stale value or one of another key cannot be told from the right one; a store that keeps equal values once would win; random letters do not compress as records do",
		"unsound: deletes without syncs stand beside deletes with them; iteration of keys alone favours stores that keep values elsewhere",
		"after the deletes every key is checked to be gone, after close the store is opened again and every key read (not timed)",
	}
}

const lettersAndDigits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// oneValue is random letters and digits, the same for each seed.
func oneValue(size int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 11))
	value := make([]byte, size)
	for i := range value {
		value[i] = lettersAndDigits[rng.IntN(len(lettersAndDigits))]
	}
	return value
}

func runLifecyclePublished(rec *Recorder, d engine.Driver, dir string, p Params) error {
	e := expect(p)
	e.same = oneValue(p.ValueBytes, p.Seed)
	return runLifecycleOn(rec, d, dir, p, e, (*lifecycle).publishedPhases)
}

func (l *lifecycle) publishedPhases() []func() error {
	return []func() error{
		func() error { return l.putAll("put", data.Sequence(l.n)) },
		func() error { return l.getEach(data.Order(l.n, l.p.Seed, 1)) },
		func() error { return l.deletePublished(data.Order(l.n, l.p.Seed, 2)) },
		func() error { return l.noneLeft(l.store) },
		func() error { return l.putAll("put2", data.Order(l.n, l.p.Seed, 3)) },
		l.walkKeys,
	}
}

// deletePublished: of one engine the article did not sync the deletes.
func (l *lifecycle) deletePublished(order []int32) error {
	if l.info.Name != laxInTheArticle || !l.p.Sync {
		return l.deleteAll(order)
	}
	lax, ok := l.store.(engine.UnsyncedDeleter)
	if !ok {
		l.rec.Note("its deletes are synced here; in the article they were not")
		return l.deleteAll(order)
	}
	l.rec.Note("its deletes are not synced, as in the article")
	return l.phase("delete", func() error { return l.deleteWith(lax.DeleteUnsynced, order) })
}

// totalPublished is from before the opening to after the close, as in the article,
// without the check that deleted keys are gone.
func (l *lifecycle) totalPublished() {
	total := time.Duration(0)
	for _, spent := range l.spent {
		total += spent
	}
	l.rec.Set("total", float64(total))
	if why, no := l.info.Cannot[engine.CanKeys]; no {
		l.rec.None(why, "total")
	}
}
