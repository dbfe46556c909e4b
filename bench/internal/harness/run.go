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
	Save   func(*result.Run) error // is given what there is after each table; nil: nobody
}

// Run carries the plan out. When the context is cancelled it kills the child,
// removes the data and returns what was measured so far, which says that it is not
// all, with an error.
func Run(ctx context.Context, plan Plan, cfg Config) (*result.Run, error) {
	root, release, err := scratch.Make(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer scratch.Remove(root)
	defer release()
	run := describe(plan, cfg)
	if cfg.Before != nil {
		if err := takeUp(run, cfg.Before); err != nil {
			return nil, err
		}
	}
	started := time.Now().Add(-run.Elapsed)
	defer func() { run.Elapsed = time.Since(started) }()
	r := &runner{plan: &plan, cfg: cfg, root: root, run: run, started: started, took: make([]time.Duration, len(plan.Tables))}
	cfg.Progress.begin(&plan, cfg.Machine.SyncDelay)
	defer cfg.Progress.end()
	if cfg.Before == nil {
		if err := r.verify(ctx); err != nil {
			return run, err
		}
	}
	counting := time.Since(started) - run.Elapsed
	for n := 1; n <= plan.Rounds; n++ {
		if err := r.round(ctx, n); err != nil {
			run.Stopped = fmt.Sprintf("what was done before the run ended early, in round %d: %v", n, err)
			return run, err
		}
		if n == 1 {
			r.fit(counting + sum(r.took))
		}
	}
	return run, nil
}

func sum(times []time.Duration) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return total
}

// fit spreads the budget by what the tables took in the first round.
func (r *runner) fit(spent time.Duration) {
	if r.plan.Most == 0 {
		return
	}
	r.plan.spread(r.took, spent)
	r.run.Rounds = r.plan.Rounds
	r.cfg.Progress.replan(r.plan, r.took)
}

type runner struct {
	plan    *Plan
	cfg     Config
	root    string
	run     *result.Run
	started time.Time
	took    []time.Duration // by table: its last round
	saved   time.Time
}

// outOfTime says why a table is not begun again, if the budget would not hold it.
func (r *runner) outOfTime(table, round int, spent time.Duration) string {
	if r.plan.Budget == 0 || round == 1 || spent+r.took[table] <= r.plan.Budget {
		return ""
	}
	return fmt.Sprintf("what fits into %s; the first left out is round %d of %s", r.plan.Budget, round, r.plan.Tables[table].Params.ID())
}

func (r *runner) round(ctx context.Context, n int) error {
	for t := range r.plan.Tables {
		if r.plan.rounds(t) < n {
			continue
		}
		if took, ok := r.has(t, n); ok {
			r.took[t] = took
			r.cfg.Progress.kept(r.plan.turn(t, n))
			continue
		}
		began := time.Now()
		if stop := r.outOfTime(t, n, began.Sub(r.started)); stop != "" {
			if r.run.Stopped == "" {
				r.run.Stopped = stop
			}
			continue
		}
		for _, c := range r.plan.turn(t, n) {
			if err := r.cell(ctx, c); err != nil {
				return err
			}
		}
		r.took[t] = time.Since(began)
		if err := r.save(t, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) cell(ctx context.Context, c cell) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	r.cfg.Progress.next(c)
	done := result.Cell{Workload: c.Params.ID(), Engine: c.driver.Info.Name, Round: c.round, Place: c.place}
	start := time.Now()
	out, err := r.child(ctx, c)
	if err != nil {
		return err
	}
	done.Elapsed = time.Since(start)
	done.Status, done.Reason = out.Status, out.Reason
	done.Metrics, done.NA, done.Notes = out.Metrics, out.NA, out.Notes
	done.Latency, done.Series, done.Durability = out.Latency, out.Series, r.durability(c)
	r.run.Cells = append(r.run.Cells, done)
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
		Schema: result.Schema, Command: os.Args, Build: build(), Started: time.Now(), Rounds: plan.Rounds, Settled: cfg.Settle, Machine: cfg.Machine,
		Data: about,
	}
	run.Data.Snappy4K, run.Data.Snappy32K = ratio.Snappy4K, ratio.Snappy32K
	for _, d := range plan.Engines {
		run.Engines = append(run.Engines, describeEngine(d))
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

func describeEngine(d engine.Driver) result.Engine {
	e := result.Engine{
		Name: d.Info.Name, Title: d.Info.Title, Module: d.Info.Module, Version: d.Version(),
		Floor: d.Info.Floor, Absent: d.Info.Absent, Cannot: map[string]string{},
		LosesAtKill: d.Info.LosesAtKill,
	}
	for ability, why := range d.Info.Cannot {
		e.Cannot[string(ability)] = why
	}
	if d.Settings != nil {
		e.Settings = Settings(d)
	}
	return e
}

// Settings lists what a driver sets in both modes, and says which where they differ.
func Settings(d engine.Driver) []result.Setting {
	on, off := d.Settings(engine.Options{Sync: true}), d.Settings(engine.Options{})
	var all []result.Setting
	for _, s := range on {
		when := workload.SyncLabel(true)
		if has(off, s) {
			when = ""
		}
		all = append(all, result.Setting{When: when, Option: s.Option, Reason: s.Reason})
	}
	for _, s := range off {
		if !has(on, s) {
			all = append(all, result.Setting{When: workload.SyncLabel(false), Option: s.Option, Reason: s.Reason})
		}
	}
	return all
}

func has(list []engine.Setting, s engine.Setting) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

func describeTable(t Table, source *data.Source) result.Workload {
	p, columns := t.Params, append([]result.Column{}, t.Workload.Columns...)
	if !t.Workload.Processes {
		columns = append(columns, workload.Common...)
	}
	return result.Workload{
		ID: p.ID(), Name: p.Workload, Variant: p.Variant, Title: t.Workload.Title, N: p.N, ValueBytes: p.ValueBytes,
		DataBytes: p.DataBytes(), Snappy: source.Compressibility(p.ValueBytes).Values, Sync: p.Sync,
		Conditions: conditions(t.Workload, p),
		Columns:    columns,
	}
}

// conditions are the workload's, and how often a cell does all of it.
func conditions(w workload.Workload, p workload.Params) []string {
	all := w.Conditions(p)
	if n := w.Repeats(p); n > 1 {
		all = append(all, fmt.Sprintf("all of it done %d times in one process, each time with a new store, the Go heap collected before; figures are the medians, but of resident memory those of the first", n))
	}
	return all
}
