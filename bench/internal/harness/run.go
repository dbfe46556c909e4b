package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/scratch"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// Config is everything a run needs beside its plan.
type Config struct {
	Dir      string // where the data go; exists
	Seed     uint64
	Records  *data.Records // of the user, in place of the pool; nil: the pool
	Machine  result.Machine
	Settle   bool      // write dirty pages back between cells
	Progress *Progress // nil: silent

	Before *result.Run             // an earlier part of this run, to be gone on with; nil: none
	Save   func(*result.Run) error // is given what there is after tables, and again later if it fails; nil: nobody
}

// Run carries the plan out. When the context is cancelled it kills the child,
// removes the data and returns what was measured so far, which says that it is not
// all, with an error.
func Run(ctx context.Context, plan Plan, cfg Config) (*result.Run, error) {
	run := describe(plan, cfg)
	part := run.Started
	if cfg.Before != nil { // refused before anything is made or removed
		if err := takeUp(run, cfg.Before); err != nil {
			return nil, err
		}
	}
	root, release, err := scratch.Make(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer scratch.Remove(root)
	defer release()
	data.SavePool(root, cfg.Seed)
	started, kept := time.Now().Add(-run.Elapsed), len(run.Cells)
	defer func() {
		if cfg.Before == nil || len(run.Cells) > kept {
			run.Elapsed = time.Since(started)
		}
	}()
	r := &runner{plan: &plan, cfg: cfg, root: root, run: run, started: started, part: part, took: make([][]time.Duration, len(plan.Tables))}
	for t := range r.took {
		r.took[t] = make([]time.Duration, len(plan.Engines))
	}
	cfg.Progress.begin(&plan, cfg.Machine.SyncDelay, started)
	defer cfg.Progress.end()
	if cfg.Before == nil {
		if err := r.verify(ctx); err != nil {
			return run, err
		}
	}
	verified := time.Since(started) - run.Elapsed
	for n := 1; n <= plan.Rounds; n++ {
		before := len(run.Cells)
		if err := r.round(ctx, n); err != nil {
			run.Stopped = fmt.Sprintf("what was done before the run ended early, in round %d: %v", n, err)
			return run, err
		}
		if run.Stopped != "" && len(run.Cells) == before {
			break // nothing that is left fits into the time
		}
		so := r.tally(n)
		so.spent += verified
		r.fit(n, so)
	}
	return run, nil
}

// tally sums up what the first n rounds have shown of each cell. A cell takes as long as it
// would have with all of the processors' time: one that was disturbed must not stay the
// only one because it took long.
func (r *runner) tally(n int) tally {
	so := newTally(r.plan)
	engines := map[string]int{}
	for e, d := range r.plan.Engines {
		engines[d.Info.Name] = e
	}
	tables := map[string]int{}
	for t, table := range r.plan.Tables {
		tables[table.Params.ID()] = t
	}
	for _, c := range r.run.Cells {
		if t, e := tables[c.Workload], engines[c.Engine]; c.Round <= n {
			so.took[t][e] += c.Undisturbed()
			so.did[t][e]++
			so.spent += c.Elapsed
		}
	}
	for t := range so.took {
		for e := range so.took[t] {
			so.took[t][e] /= time.Duration(max(1, so.did[t][e]))
		}
	}
	return so
}

// fit spreads what is left of the budget after n rounds by what they have shown. Where only
// those rounds matter that steady a ratio of Cairn to the best rival, the race for
// being that is narrowed as more is known (racing: Maron and Moore, NIPS 6, 1993).
func (r *runner) fit(n int, so tally) {
	if r.plan.Most == 0 || n > 1 && !r.plan.Matter {
		return
	}
	var stake func(table int, engine string) float64
	if r.plan.Matter {
		var stakes []map[string]float64
		for _, t := range report.Tabulate(r.run) {
			stakes = append(stakes, t.Stakes())
		}
		stake = func(table int, engine string) float64 { return stakes[table][engine] }
	}
	r.plan.spread(n, so, stake)
	r.run.Rounds = r.plan.Rounds
	r.cfg.Progress.replan(r.plan, so)
}

type runner struct {
	plan    *Plan
	cfg     Config
	root    string
	run     *result.Run
	started time.Time
	part    time.Time         // when this part of the run began
	took    [][]time.Duration // by table and engine: the last round
	saved   time.Time         // when that was tried last
	unsaved string            // why it failed; empty: it did not
}

// outOfTime says why a table's turn is not begun, if the budget would not hold it.
func (r *runner) outOfTime(turn []cell, spent time.Duration) string {
	for _, c := range turn {
		spent += r.took[c.table][c.engine]
	}
	c := turn[0]
	if r.plan.Budget == 0 || c.round == 1 || spent <= r.plan.Budget {
		return ""
	}
	return fmt.Sprintf("what fits into %s; the first left out is round %d of %s", r.plan.Budget, c.round, c.Params.ID())
}

func (r *runner) round(ctx context.Context, n int) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	for t := range r.plan.Tables {
		turn := r.plan.turn(t, n)
		if len(turn) == 0 {
			continue
		}
		if r.has(turn) {
			r.cfg.Progress.kept(turn)
			continue
		}
		if stop := r.outOfTime(turn, time.Since(r.started)); stop != "" {
			if r.run.Stopped == "" {
				r.run.Stopped = stop
			}
			continue
		}
		for _, c := range turn {
			if err := r.cell(ctx, c); err != nil {
				return err
			}
		}
		r.run.Whole = len(r.run.Cells)
		r.save(t, n)
	}
	return nil
}

func (r *runner) cell(ctx context.Context, c cell) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	r.cfg.Progress.next(c)
	done := result.Cell{Workload: c.Params.ID(), Engine: c.driver.Info.Name, Round: c.round, Place: c.place}
	weather := r.weather(c)
	start := time.Now()
	out, err := r.child(ctx, c)
	if err != nil {
		return err
	}
	done.Elapsed = time.Since(start)
	done.Weather = weather()
	r.took[c.table][c.engine] = done.Elapsed
	done.Status, done.Reason = out.Status, out.Reason
	done.Metrics, done.NA, done.Notes = out.Metrics, out.NA, out.Notes
	done.Latency, done.Series, done.Durability = out.Latency, out.Series, r.durability(c)
	r.run.Cells = append(r.run.Cells, done)
	r.countPart()
	r.cfg.Progress.done(c, done)
	return nil
}

func (r *runner) child(ctx context.Context, c cell) (outcome, error) {
	if why := c.driver.Info.Absent; why != "" {
		return outcome{Status: result.Absent, Reason: why}, nil
	}
	dir, err := r.storeDir()
	if err != nil {
		return outcome{}, err
	}
	if r.cfg.Settle {
		defer settle()
	}
	defer scratch.Remove(dir)
	o := order{Engine: c.driver.Info.Name, Params: c.Params, Root: r.root, Dir: dir}
	out, err := r.bounded(ctx, o, c.limit(r.plan, r.cfg.Machine.SyncDelay))
	if err == nil && out.Status.Bad() && full(dir) {
		out.Reason += fullDisk
	}
	return out, err
}

// fullDisk is added to what went wrong.
const fullDisk = " (the file system of the data is almost full)"

// storeDir makes an empty directory for the next store.
func (r *runner) storeDir() (string, error) {
	dir := filepath.Join(r.root, "store")
	return dir, os.Mkdir(dir, 0o755)
}

// Interrupted reports whether err of Run says that its context was cancelled.
func Interrupted(err error) bool { return errors.Is(err, errInterrupted) }

// describe fills in everything of a run that is known beforehand.
func describe(plan Plan, cfg Config) *result.Run {
	source, about := describeData(plan, cfg)
	ratio := source.Compressibility(4096)
	run := &result.Run{
		Schema: result.Schema, Command: os.Args, Build: build(), Started: time.Now(), Rounds: plan.Rounds, Settled: cfg.Settle && settles, Machine: cfg.Machine,
		Data: about,
	}
	run.Data.Snappy4K, run.Data.Snappy32K = ratio.Snappy4K, ratio.Snappy32K
	for _, d := range plan.Engines {
		run.Engines = append(run.Engines, describeEngine(d, plan.Tables))
	}
	for _, t := range plan.Tables {
		run.Workloads = append(run.Workloads, describeTable(t, source))
	}
	return run
}

// describeData makes the values the engines will be fed and says what they are.
func describeData(plan Plan, cfg Config) (*data.Source, result.Data) {
	if cfg.Records == nil {
		return data.NewSource(cfg.Seed), result.Data{Seed: cfg.Seed, PoolBytes: data.PoolBytes}
	}
	about := result.Data{Seed: cfg.Seed, Records: len(cfg.Records.Values), Skipped: len(cfg.Records.Bad)}
	for _, v := range cfg.Records.Values {
		about.PoolBytes += len(v)
	}
	for _, t := range plan.Tables {
		if f := t.Params.Data; f != nil {
			about.File, about.KeyField = filepath.Base(f.Path), f.Key
		}
	}
	return cfg.Records.Source(cfg.Seed), about
}

func describeEngine(d engine.Driver, tables []Table) result.Engine {
	e := result.Engine{
		Name: d.Info.Name, Title: d.Info.Title, Module: d.Info.Module, Version: d.Version(),
		Floor: d.Info.Floor, Absent: d.Info.Absent, Cannot: map[string]string{},
		LosesAtKill: d.Info.LosesAtKill, KeepsBatches: d.Info.KeepsBatches,
	}
	for ability, why := range d.Info.Cannot {
		e.Cannot[string(ability)] = why
	}
	if d.Settings != nil {
		e.Settings = Settings(d, tables)
	}
	return e
}

func describeTable(t Table, source *data.Source) result.Workload {
	p := t.Params
	return result.Workload{
		ID: p.ID(), Name: p.Workload, Variant: p.Variant, Title: t.Workload.Title, N: p.N, ValueBytes: p.ValueBytes,
		DataBytes: p.DataBytes(), Snappy: source.ValueCompressibility(p.ValueBytes), Sync: p.Sync,
		Batches:    t.Workload.OnlyBatches(),
		Conditions: conditions(t.Workload, p),
		Columns:    t.Workload.AllColumns(),
	}
}

// conditions are the workload's, and how often a cell does all of it.
func conditions(w workload.Workload, p workload.Params) []string {
	all := w.Conditions(p)
	if p.ArticleOnly {
		all = append(all, "only the engines that the article measured, and Cairn: every engine does the sound variant beside it")
	}
	if n := w.Repeats(p); n > 1 {
		all = append(all, fmt.Sprintf("all of it done %d times in one process, each time with a new store, the Go heap collected before; figures are the medians, but of allocations the means, of resident memory those of the first", n))
	}
	return all
}
