package result

import (
	"fmt"
	"slices"
	"strings"
)

// Part returns the run with those workloads only that are asked for, and of these those
// columns. A workload is asked for by parts of its ID, as in "w1/n=2000", a column by its
// key; what is asked for twice is there once; of each, nothing asked for is everything. It is an error to ask for what is not there.
func (r *Run) Part(workloads, columns []string) (*Run, error) {
	part := *r
	if len(workloads) > 0 {
		part.Workloads = nil
	}
	for _, want := range workloads {
		found := slices.DeleteFunc(slices.Clone(r.Workloads), func(w Workload) bool { return !w.is(want) })
		if len(found) == 0 {
			return nil, fmt.Errorf("no workload %q in this run", want)
		}
		for _, w := range found {
			if !slices.ContainsFunc(part.Workloads, func(have Workload) bool { return have.ID == w.ID }) {
				part.Workloads = append(part.Workloads, w)
			}
		}
	}
	part.Cells = slices.DeleteFunc(slices.Clone(r.Cells), func(c Cell) bool {
		return !slices.ContainsFunc(part.Workloads, func(w Workload) bool { return w.ID == c.Workload })
	})
	if len(columns) == 0 {
		return &part, nil
	}
	part.Workloads = slices.Clone(part.Workloads)
	for i := range part.Workloads {
		if err := part.Workloads[i].keep(columns); err != nil {
			return nil, err
		}
	}
	return &part, nil
}

// is reports whether all parts of want are parts of the workload's ID.
func (w *Workload) is(want string) bool {
	have := strings.Split(w.ID, "/")
	return !slices.ContainsFunc(strings.Split(want, "/"), func(part string) bool { return !slices.Contains(have, part) })
}

// keep keeps the columns with the given keys, in the order of these.
func (w *Workload) keep(keys []string) error {
	var kept []Column
	for _, key := range keys {
		i := slices.IndexFunc(w.Columns, func(c Column) bool { return c.Key == key })
		if i < 0 {
			return fmt.Errorf("no column %q in workload %s", key, w.ID)
		}
		if c := w.Columns[i]; !slices.Contains(kept, c) {
			kept = append(kept, c)
		}
	}
	w.Columns, w.Chosen = kept, true
	return nil
}
