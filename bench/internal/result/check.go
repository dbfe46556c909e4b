package result

import (
	"fmt"
	"slices"
	"time"
)

// check refuses a run that no laboratory writes: whose parts are there twice, or refer to what is
// not there, or whose figures are negative. (JSON has none that are not finite.)
func (r *Run) check() error {
	engines, err := unique("engine", r.Engines, func(e Engine) string { return e.Name })
	if err != nil {
		return err
	}
	workloads, err := unique("workload", r.Workloads, func(w Workload) string { return w.ID })
	if err != nil {
		return err
	}
	for _, w := range r.Workloads {
		if _, err := unique("column", w.Columns, func(c Column) string { return c.Key }); err != nil {
			return fmt.Errorf("workload %s: %w", w.ID, err)
		}
	}
	for _, d := range r.Durability {
		if !engines[d.Engine] {
			return fmt.Errorf("durability: no engine %q", d.Engine)
		}
	}
	type place struct {
		workload, engine string
		round            int
	}
	seen := map[place]bool{}
	for i, c := range r.Cells {
		at := place{c.Workload, c.Engine, c.Round}
		err := c.check()
		switch {
		case !engines[c.Engine]:
			err = fmt.Errorf("no engine %q", c.Engine)
		case !workloads[c.Workload]:
			err = fmt.Errorf("no workload %q", c.Workload)
		case seen[at]:
			err = fmt.Errorf("round %d twice, of %s on %s", c.Round, c.Workload, c.Engine)
		}
		if err != nil {
			return fmt.Errorf("cell %d: %w", i+1, err)
		}
		seen[at] = true
	}
	return took(r.Elapsed)
}

// unique returns the names of things, each of which has one of its own.
func unique[T any](what string, things []T, name func(T) string) (map[string]bool, error) {
	names := map[string]bool{}
	for _, thing := range things {
		if names[name(thing)] {
			return nil, fmt.Errorf("%s %q twice", what, name(thing))
		}
		names[name(thing)] = true
	}
	return names, nil
}

// check looks at the cell by itself.
func (c Cell) check() error {
	if !slices.Contains(worstFirst, c.Status) {
		return fmt.Errorf("status %q", c.Status)
	}
	if c.Round < 1 {
		return fmt.Errorf("round %d", c.Round)
	}
	for _, figures := range []map[string]float64{c.Metrics, c.Latency} {
		for key, v := range figures {
			if v < 0 {
				return fmt.Errorf("%s is %v", key, v)
			}
		}
	}
	return took(c.Elapsed)
}

func took(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("it took %s", d)
	}
	return nil
}
