package workload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/peer"
	"github.com/cairndb/cairn/bench/internal/result"
)

func init() {
	Register(Workload{
		Name:       "crash",
		Title:      "Crash: a process that writes is killed (kill -9) in the middle; every acknowledged write is looked for",
		Variant:    "sound",
		FullOnly:   true,
		QuickN:     []int{2_000},
		FullN:      []int{20_000},
		ValueBytes: 100,
		Unfit:      madeRecords,
		Conditions: crashConditions,
		Columns:    crashColumns,
		Estimate:   crashEstimate,
		Run:        runCrash,
		Processes:  true,
		Commits:    []CommitKind{PutCommits, DeleteCommits, BatchCommits},
	})
	peer.Register("victim", runVictim)
}

// crashKills is how many times a cell's writer is killed.
const crashKills = 5

var crashColumns = []result.Column{
	{Key: "acknowledged", Title: "acknowledged", Group: "crash", Unit: result.Number},
	{Key: "lost", Title: "lost", Group: "crash", Unit: result.Number, Ranked: true},
	{Key: "lost_batches", Title: "of them batches", Group: "crash", Unit: result.Number},
	{Key: "torn", Title: "torn batches", Group: "crash", Unit: result.Number, Ranked: true},
	{Key: "unopened", Title: "did not open", Group: "crash", Unit: result.Number, Ranked: true},
	{Key: "reopen", Title: "reopen, slowest", Group: "crash", Unit: result.Nanos, Ranked: true},
}

func crashConditions(p Params) []string {
	return []string{
		fmt.Sprintf("%d times: a process writes to the store what it can, single puts, of which every tenth commit is a delete instead, and after every %d of them a batch of %d pairs, over %d keys again and again, and is killed with SIGKILL after about %d commits were acknowledged", crashKills, crashSingles, crashBatch, crashKeys, p.N/crashKills),
		fmt.Sprintf("values have %d B, those of every tenth commit and of every fifth batch %d B, of every hundredth commit %d B", p.ValueBytes, crashMiddling, crashLong),
		"each put, each delete and each batch is one commit" + syncCondition(p.Sync) + "; each acknowledgement goes through a pipe to the process that checks",
		"then the store is opened (reopen, with whatever repair the engine does by itself) and every key compared, those that were deleted too: lost = acknowledged commits of which some key shows neither them nor a later one (a deleted key that is back, too); torn = batches of which only a part is there",
		"did not open = of the " + strconv.Itoa(crashKills) + " kills, after how many the store did not open or could not be read; the next kill begins with a new store, and the engine has failed; it is void if it lost or tore commits that it was asked to make durable",
		"kill -9 takes what a process keeps in its own memory; what the kernel holds survives it: this is no loss of power, so an engine that never syncs may lose nothing here",
	}
}

func crashEstimate(p Params, e engine.Info, syncDelay time.Duration) time.Duration {
	total := crashKills*500*time.Millisecond + time.Duration(p.N)*200*time.Microsecond
	if p.Sync && e.Can(engine.CanSync) {
		total += time.Duration(p.N) * syncDelay * 2
	}
	return total
}

// crash is one run: a model of what was acknowledged, across kills.
type crash struct {
	*crashModel
	rec      *Recorder
	d        engine.Driver
	p        Params
	base     string
	dir      string // of the store under way
	stores   int
	unopened int
	slowest  time.Duration
	problem  string
}

func runCrash(rec *Recorder, d engine.Driver, dir string, p Params) error {
	for _, a := range []engine.Ability{engine.CanDisk, engine.CanGet} {
		if why := d.Info.Cannot[a]; why != "" {
			for _, c := range append(crashColumns, Common...) {
				rec.None(why, c.Key)
			}
			return nil
		}
	}
	c := &crash{crashModel: newCrashModel(p, d.Info), rec: rec, d: d, p: p, base: dir}
	if err := c.newStore(); err != nil {
		return err
	}
	for kill := range crashKills {
		if err := c.cycle(kill); err != nil {
			return err
		}
	}
	c.sumUp()
	return c.verdict()
}

func (c *crash) newStore() error {
	c.stores++
	c.dir = filepath.Join(c.base, strconv.Itoa(c.stores))
	c.forget()
	return os.Mkdir(c.dir, 0o755)
}

// cycle lets a writer run, kills it and looks at what is left.
func (c *crash) cycle(kill int) error {
	quota := c.p.N / crashKills
	if err := c.victim(max(1, quota/2+(kill*quota)/crashKills)); err != nil {
		return err
	}
	begun := time.Now()
	store, err := c.d.Open(c.dir, c.p.options())
	took := time.Since(begun)
	if err == nil {
		c.slowest = max(c.slowest, took)
		if err = c.check(store); isWrongAnswer(err) {
			return err
		}
		if closing := store.Close(); err == nil {
			err = closing
		}
	}
	if err == nil {
		return nil
	}
	c.unopened++
	c.problem = err.Error()
	return c.newStore()
}

// victim starts a writer, notes its acknowledgements, kills it after some, and notes
// those that were still on their way.
func (c *crash) victim(after int) error {
	w, err := peer.Start("victim", victimOrder{part{c.d.Info.Name, c.dir, c.p}, c.next})
	if err != nil {
		return err
	}
	defer w.Kill()
	acknowledged, last := 0, c.next
	for {
		seq, err := readSequence(w.Out)
		if err != nil {
			break
		}
		if seq != last {
			return fmt.Errorf("acknowledgement %d in place of %d", seq, last)
		}
		last++
		if acknowledged++; acknowledged == after {
			w.Kill()
		}
	}
	if ended := w.Wait(); acknowledged < after {
		return fmt.Errorf("the writer ended by itself after %d commits: %w", acknowledged, ended)
	}
	c.acknowledge(last)
	return nil
}

func (c *crash) sumUp() {
	c.rec.None("several processes: not one figure", result.PeakRSS, result.CPU, result.Written)
	c.rec.Set("acknowledged", float64(c.acknowledged))
	c.rec.Set("lost", float64(c.lost))
	c.rec.Set("unopened", float64(c.unopened))
	c.rec.Set("torn", float64(c.torn))
	c.rec.Set("lost_batches", float64(c.lostBatches))
	if !c.batches {
		c.rec.None(c.d.Info.Cannot[engine.CanBatch], "torn", "lost_batches")
	}
	c.rec.Set("reopen", float64(c.slowest))
	for _, fault := range []string{c.unable(), c.lossy(), c.tore()} {
		c.rec.Note(fault)
	}
}

// verdict: a store that does not open after a kill has failed, and one that was asked to
// make commits durable and lost or tore some has answered wrong. What is lost of commits that
// are not synced is a figure.
func (c *crash) verdict() error {
	if faults := c.lossy() + c.tore(); faults != "" && c.p.Sync && c.d.Info.Can(engine.CanSync) {
		return wrong("%s", strings.Join(c.rec.Notes, "; "))
	}
	if c.unopened > 0 {
		return errors.New(strings.Join(c.rec.Notes, "; "))
	}
	return nil
}

// unable, lossy and tore say what was found; empty: nothing.
func (c *crash) unable() string {
	if c.unopened == 0 {
		return ""
	}
	return fmt.Sprintf("DID NOT OPEN after %d of %d kills: %s", c.unopened, crashKills, c.problem)
}

func (c *crash) lossy() string {
	if c.lost == 0 {
		return ""
	}
	return fmt.Sprintf("LOST %d of %d acknowledged commits when its process was killed (%s)", c.lost, c.acknowledged, SyncLabel(c.p.Sync))
}

func (c *crash) tore() string {
	if c.torn == 0 {
		return ""
	}
	return fmt.Sprintf("TORE %d batches: a part of each was there and a part was not", c.torn)
}
