package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
	"github.com/cairndb/cairn/bench/internal/harness"
	"github.com/cairndb/cairn/bench/internal/result"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// What the suites may take if no time is given: quickTime keeps the quick one below ten
// minutes; the full one is run once however long it takes, and again within fullTime.
const (
	quickTime = 9*time.Minute + 40*time.Second
	fullTime  = 150 * time.Minute
)

// mostRounds is how many rounds are made if there is time for them.
const mostRounds = 15

// flags of the verb run.
type flags struct {
	suite, engines    []string
	quick, full       bool
	counts            []int // of keys
	keys, values      int
	zipf              float64
	rate, seconds     float64
	rounds            int
	data              data.File
	sync              string
	settle            bool
	seed              uint64
	time, timeout     time.Duration
	dir, json, format string
	resume            string
	html              string
	given             func(flag string) bool // whether it is on the command line
}

// defaultPage is where whole suites leave their report.
const defaultPage = "cairn-bench.html"

func runCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "run workloads on engines and print what came out",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringSliceVar(&f.suite, "suite", nil, "workloads, as in w1,w4/published (default all)")
	set.StringSliceVar(&f.engines, "engines", nil, "engines, as in cairn,bbolt (default all)")
	set.BoolVar(&f.quick, "quick", false, "the small counts only; this is the default")
	set.BoolVar(&f.full, "full", false, "the large counts and all variants too; takes hours")
	set.IntSliceVar(&f.counts, "n", nil, "number of keys, in place of the suite's; of several, as in 100000,1000000, the report shows how costs grow")
	set.IntVar(&f.keys, "keys", 0, "bytes of a key, in place of 16")
	set.IntVar(&f.values, "values", 0, "bytes of a value, in place of the workload's")
	set.Float64Var(&f.zipf, "zipf", 0, "skew of the random reads of load (default: none) and of ycsb (default 0.99)")
	set.Float64Var(&f.rate, "rate", 0, "operations a second that latency and sustained offer every engine (default: 70 or 60 % of what each can do)")
	set.Float64Var(&f.seconds, "seconds", 0, "how long latency and sustained keep their rate (default 4 or 10, and 60)")
	set.StringVar(&f.data.Path, "data", "", "records to measure with, in place of made ones: a .jsonl file, each line a value, or a .csv file with a header, each row a value")
	set.StringVar(&f.data.Key, "data-key", "", "field of the records that is the key (default: keys are made)")
	set.BoolVar(&f.data.SkipBad, "data-skip-bad", false, "leave malformed records out in place of refusing the file")
	set.IntVar(&f.rounds, "rounds", 0, "rounds of each engine in each workload (default: one, then up to 15, as the time holds, of those that may be the best in something)")
	set.DurationVar(&f.time, "time", 0, "for the whole run: after one round of all, spread to where it steadies the ratios of Cairn to the best rivals most (default 9m40s for the quick suite, 2h30m for the full, whose first round may take longer)")
	set.StringVar(&f.sync, "sync", "", "on, off or both (default: what each workload is for)")
	set.BoolVar(&f.settle, "settle", true, "write dirty pages back between cells, so that none pays for another")
	set.Uint64Var(&f.seed, "seed", 1, "of the data and the orders")
	set.DurationVar(&f.timeout, "timeout", 0, "for one cell (default: far more than it should take)")
	set.StringVar(&f.dir, "dir", "", "where the data go (default: the directory for temporary files)")
	set.StringVar(&f.json, "json", "", "also write everything measured to this file")
	set.StringVar(&f.resume, "continue", "", "go on with the run that this file of -json has a part of, or begin it; the other flags as before")
	set.StringVar(&f.html, "html", "", "write the report for browsers to this file, none for no file (default: "+defaultPage+" for whole suites)")
	set.StringVar(&f.format, "format", "text", "of standard output: text, json, benchstat, markdown or html")
	return cmd
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected %q", args[0])}
	}
	return nil
}

func (f *flags) run(cmd *cobra.Command) error {
	f.given = cmd.Flags().Changed
	records, err := f.records(cmd.ErrOrStderr())
	if err != nil {
		return usageError{err}
	}
	plan, err := f.plan(records)
	if err != nil {
		return usageError{err}
	}
	if err := f.checkPlaces(); err != nil {
		return usageError{err}
	}
	asked := f.dir
	if f.dir, err = harness.Place(asked); err != nil && asked != "" {
		return usageError{fmt.Errorf("-dir: %w", err)}
	} else if err != nil {
		return err
	}
	machine, err := harness.Machine(f.dir)
	if err != nil {
		return err
	}
	before, err := f.before()
	if err != nil {
		return usageError{err}
	}
	f.fitRounds(&plan, machine.SyncDelay)
	announce(cmd.ErrOrStderr(), plan, machine, f.dir)
	run, err := harness.Run(cmd.Context(), plan, harness.Config{
		Dir: f.dir, Seed: f.seed, Records: records, Machine: machine, Settle: f.settle,
		Progress: harness.NewProgress(os.Stderr, term.IsTerminal(int(os.Stderr.Fd()))),
		Before:   before, Save: f.saver(),
	})
	if err != nil && (run == nil || len(run.Cells) == 0) {
		return err
	}
	return errors.Join(err, f.finish(cmd, run))
}

// finish writes what was measured to files and shows it, each whether or not the others can
// be written, and says what does not count. Files come first: the program does not outlive
// a standard output that nobody reads any more.
func (f *flags) finish(cmd *cobra.Command, run *result.Run) error {
	saved := f.save(run)
	shown := show(cmd.OutOrStdout(), f.format, run)
	if saved == nil && f.html != "" && f.html != noPage {
		fmt.Fprintf(cmd.ErrOrStderr(), "cairn-bench: the report for browsers is %s\n", f.html)
	}
	var counts error
	if bad := run.Bad(); len(bad) > 0 {
		counts = fmt.Errorf("%d of %d %w", len(bad), len(run.Cells), errBadCells)
	}
	return errors.Join(saved, shown, counts)
}

// before reads what there is of a run to be continued; nil if nothing.
func (f *flags) before() (*result.Run, error) {
	if f.resume == "" {
		return nil, nil
	}
	run, err := readRun(f.resume)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return run, err
}

// saver returns who keeps what was measured so far; nil where only the whole has a place.
func (f *flags) saver() func(*result.Run) error {
	if f.json == "" || special(f.json) {
		return nil
	}
	return func(run *result.Run) error { return writeJSON(f.json, run) }
}

// plan checks the flags and lists the cells.
func (f *flags) plan(records *data.Records) (harness.Plan, error) {
	if err := f.check(); err != nil {
		return harness.Plan{}, err
	}
	engines, err := engine.Choose(f.engines)
	if err != nil {
		return harness.Plan{}, err
	}
	workloads, err := workload.Choose(f.suite, f.full)
	if err != nil {
		return harness.Plan{}, err
	}
	plan := harness.NewPlan(engines, workloads, f.scale(records))
	if len(plan.Tables) == 0 {
		if len(plan.Unfit) == 0 {
			return plan, errors.New("nothing to run: no workload that was chosen runs with these flags")
		}
		return plan, fmt.Errorf("nothing to run: %s", strings.Join(plan.Unfit, "; "))
	}
	plan.Limit = f.timeout
	return plan, errors.Join(f.fitKeys(plan), f.checkUsed(plan), fitRate(plan))
}

var syncModes = map[string][]bool{"": nil, "on": {true}, "off": {false}, "both": {true, false}}

func (f *flags) check() error {
	switch {
	case f.suite != nil && len(f.suite) == 0:
		return errors.New("-suite: names no workload")
	case f.engines != nil && len(f.engines) == 0:
		return errors.New("-engines: names no engine")
	case f.quick && f.full:
		return fmt.Errorf("-quick and -full exclude each other")
	case slices.ContainsFunc(f.counts, func(n int) bool { return n < 1 || n > 1<<30 }):
		return fmt.Errorf("-n %s: want 1 to %d", numbers(f.counts), 1<<30)
	case len(slices.Compact(slices.Sorted(slices.Values(f.counts)))) < len(f.counts):
		return fmt.Errorf("-n %s: each number once", numbers(f.counts))
	case f.none("values", float64(f.values)) || f.values > data.MaxValueBytes:
		return fmt.Errorf("-values %d: want 1 to %d", f.values, data.MaxValueBytes)
	case f.none("keys", float64(f.keys)) || f.keys > data.MaxKeyBytes:
		return fmt.Errorf("-keys %d: want 1 to %d, what every engine takes", f.keys, data.MaxKeyBytes)
	case f.none("zipf", f.zipf) || f.zipf > 10:
		return fmt.Errorf("-zipf %v: want more than 0, up to 10", f.zipf)
	case f.none("rate", f.rate) || f.rate > 1e9:
		return fmt.Errorf("-rate %v: want more than 0, up to 1e9", f.rate)
	case f.none("seconds", f.seconds) || f.seconds > 86400:
		return fmt.Errorf("-seconds %v: want more than 0, up to a day", f.seconds)
	case f.none("rounds", float64(f.rounds)):
		return fmt.Errorf("-rounds %d: want 1 or more", f.rounds)
	case f.none("time", float64(f.time)):
		return fmt.Errorf("-time %s: want more than 0", f.time)
	case f.none("timeout", float64(f.timeout)):
		return fmt.Errorf("-timeout %s: want more than 0", f.timeout)
	case f.data.Path == "" && (f.data.Key != "" || f.data.SkipBad):
		return fmt.Errorf("-data-key and -data-skip-bad go with -data")
	case f.data.Path != "" && f.values > 0:
		return fmt.Errorf("-data and -values exclude each other: records keep their sizes")
	case f.resume != "" && f.json != "" && f.json != f.resume:
		return fmt.Errorf("-continue and -json name different files: a run that is continued stays in its file")
	case f.data.Key != "" && f.keys > 0:
		return fmt.Errorf("-data-key and -keys exclude each other: records keep their keys")
	case f.sync != "" && syncModes[f.sync] == nil:
		return fmt.Errorf("-sync %q: want on, off or both", f.sync)
	}
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.resume != "" {
		f.json = f.resume
	}
	f.choosePage()
	return nil
}

// none reports whether a flag was given that asks for nothing, or for no number: 0 stands for one that was not.
func (f *flags) none(flag string, value float64) bool { return !(value > 0) && f.given(flag) }

// checkUsed refuses a flag by which no workload of the plan goes.
func (f *flags) checkUsed(plan harness.Plan) error {
	var skewed, timed bool
	for _, t := range plan.Tables {
		skewed = skewed || t.Params.Theta > 0
		timed = timed || t.Params.Seconds > 0
	}
	switch {
	case f.zipf > 0 && !skewed:
		return errors.New("-zipf: only load and ycsb go by it")
	case f.rate > 0 && !timed:
		return errors.New("-rate: only latency and sustained keep one")
	case f.seconds > 0 && !timed:
		return errors.New("-seconds: only latency and sustained keep a rate so long")
	}
	return nil
}

// fitRate refuses a rate at which nothing is done in the time for which it is kept.
func fitRate(plan harness.Plan) error {
	for _, t := range plan.Tables {
		if p := t.Params; p.Rate > 0 && p.Rate*p.Seconds < 1 {
			return fmt.Errorf("-rate %g: not one operation in the %g s of %s", p.Rate, p.Seconds, p.Workload)
		}
	}
	return nil
}

// noPage is the -html for no file.
const noPage = "none"

// choosePage decides whether there is an HTML report, and where.
func (f *flags) choosePage() {
	part := len(f.counts) > 0 || f.values > 0 || len(f.suite) > 0 || len(f.engines) > 0
	if f.html == "" && (f.quick || f.full || !part) {
		f.html = defaultPage
	}
}

// fitRounds: asked for, or as many as the time allows.
func (f *flags) fitRounds(plan *harness.Plan, syncDelay time.Duration) {
	most, limit := mostRounds, f.time
	plan.Matter = f.rounds == 0
	if f.rounds > 0 {
		most = f.rounds
	}
	switch {
	case limit > 0 || f.rounds > 0:
	case f.full:
		limit = fullTime
	default:
		limit = quickTime
	}
	plan.FitRounds(limit, syncDelay, most)
}

// announce says what will happen and how long it should take.
func announce(w io.Writer, plan harness.Plan, m result.Machine, dir string) {
	fmt.Fprintf(w, "cairn-bench: %d engines, %d workloads, %s (a sync takes %s here)\n",
		len(plan.Engines), len(plan.Tables), duration(plan, m.SyncDelay), m.SyncDelay.Round(time.Microsecond))
	fmt.Fprintf(w, "cairn-bench: data in %s (%s), removed at the end\n", dir, m.Filesystem)
	for _, why := range plan.Unfit {
		fmt.Fprintf(w, "cairn-bench: not run: %s\n", why)
	}
	for _, d := range plan.Engines {
		if d.Info.Absent != "" {
			fmt.Fprintf(w, "cairn-bench: %s: %s\n", d.Info.Name, d.Info.Absent)
		}
	}
}

// duration says how long a plan takes; with a budget, rounds are added as long as they
// fit when the first has shown what they take.
func duration(plan harness.Plan, syncDelay time.Duration) string {
	if plan.Budget == 0 {
		return fmt.Sprintf("up to %d rounds: about %s", plan.Rounds, harness.Rough(plan.Estimate(syncDelay)))
	}
	once := harness.Rough(plan.EstimateOnce(syncDelay))
	return fmt.Sprintf("one round: about %s; up to %d within %s", once, plan.Most, harness.Rough(plan.Budget))
}

func writeJSON(name string, run *result.Run) error {
	var text bytes.Buffer
	if err := run.Encode(&text); err != nil {
		return err
	}
	return replace(name, text.Bytes())
}
