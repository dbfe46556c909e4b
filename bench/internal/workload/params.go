package workload

import (
	"fmt"
	"slices"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/engine"
)

// Params are the parameters of one cell.
type Params struct {
	Workload   string `json:"workload"`
	Variant    string `json:"variant"`
	N          int    `json:"n"`
	ValueBytes int    `json:"value_bytes"` // the mean, with Data
	Sync       bool   `json:"sync"`
	Seed       uint64 `json:"seed"`

	// Of some workloads only; zero where they do not apply.
	KeyBytes   int     `json:"key_bytes,omitempty"` // 0: data.KeyBytes
	Goroutines int     `json:"goroutines,omitempty"`
	Writers    int     `json:"writers,omitempty"` // goroutines that only put, at once
	Processes  int     `json:"processes,omitempty"`
	Memory     int64   `json:"memory,omitempty"`  // bytes each engine is allowed
	Seconds    float64 `json:"seconds,omitempty"` // of a timed workload
	Rate       float64 `json:"rate,omitempty"`    // operations a second of one; 0: each engine's own
	Dist       string  `json:"dist,omitempty"`    // of keys: sequential, uniform, zipf, scrambled, latest
	Theta      float64 `json:"theta,omitempty"`   // of the Zipfian ones
	Detail     string  `json:"detail,omitempty"`  // what tells cells of one workload apart otherwise

	ArticleOnly bool `json:"article_only,omitempty"` // see Workload.Article

	Data *data.File `json:"data,omitempty"` // the user's records, in place of the pool
}

// ID names the cell in tables and benchmark names.
func (p Params) ID() string {
	id := fmt.Sprintf("%s/%s/n=%d/v=%d/%s", p.Workload, p.Variant, p.N, p.ValueBytes, SyncLabel(p.Sync))
	if p.KeyBytes > 0 {
		id += fmt.Sprintf("/k=%d", p.KeyBytes)
	}
	if p.Goroutines > 0 {
		id += fmt.Sprintf("/g=%d", p.Goroutines)
	}
	if p.Theta > 0 {
		id += fmt.Sprintf("/zipf=%v", p.Theta)
	}
	if p.Rate > 0 {
		id += fmt.Sprintf("/rate=%v", p.Rate)
	}
	if p.Data != nil {
		id += "/data"
	}
	if p.Detail != "" {
		id += "/" + p.Detail
	}
	return id
}

// keyBytes is the length of a key.
func (p Params) keyBytes() int {
	if p.KeyBytes > 0 {
		return p.KeyBytes
	}
	return data.KeyBytes
}

// options are what a cell asks of its engine.
func (p Params) options() engine.Options {
	return engine.Options{Sync: p.Sync, Keys: p.N, Writers: p.Writers}
}

// DataBytes is the size of the set: every key and every value once, by the mean
// where sizes differ.
func (p Params) DataBytes() int64 { return int64(p.N) * int64(p.keyBytes()+p.ValueBytes) }

// SyncLabel returns "sync=on" or "sync=off".
func SyncLabel(sync bool) string {
	if sync {
		return "sync=on"
	}
	return "sync=off"
}

// Scale chooses the parameters of a suite. Zero values leave a workload's own.
type Scale struct {
	Full       bool
	Counts     []int // of keys, in place of the suite's
	ValueBytes int   // in place of the workload's size
	KeyBytes   int
	Theta      float64 // of the Zipfian ones
	Rate       float64 // of the workloads that keep one
	Seconds    float64 // for which they keep it
	Sync       []bool
	Seed       uint64

	Data    *data.File // the user's records; ValueBytes is their mean then
	OwnKeys int        // how many keys the records bring; 0: keys are made
}

// Cells returns the parameters a scale asks for; none if the workload does not go
// with it (Unfit).
func (w Workload) Cells(s Scale) []Params {
	if w.Unfit != nil && w.Unfit(s) != "" {
		return nil
	}
	var cells []Params
	for _, n := range w.counts(s) {
		for _, sync := range w.modes(s, n) {
			p := Params{
				Workload: w.Name, Variant: w.Variant, N: w.within(n, sync, s), ValueBytes: w.ValueBytes, KeyBytes: s.KeyBytes,
				Sync: sync, Seed: s.Seed, Data: s.Data,
				ArticleOnly: w.Article != nil && len(s.Counts) == 0 && n == slices.Max(w.FullN),
			}
			if s.ValueBytes > 0 {
				p.ValueBytes = s.ValueBytes
			}
			if w.Skewed {
				p.Theta = s.Theta
			}
			cells = append(cells, w.vary(p, s)...)
		}
	}
	return cells
}

// counts are the suite's, or those asked for, and no more than there are keys.
func (w Workload) counts(s Scale) []int {
	counts := w.QuickN
	if s.Full || w.LargeToo {
		counts = w.FullCounts()
	}
	if len(s.Counts) > 0 {
		counts = s.Counts
	}
	if s.OwnKeys == 0 {
		return counts
	}
	var within []int
	for _, n := range counts {
		if n = min(n, s.OwnKeys); !slices.Contains(within, n) {
			within = append(within, n)
		}
	}
	return within
}

// FullCounts are those of the full suite. What only that suite has is done once: its
// small count is for a look at it by name.
func (w Workload) FullCounts() []int {
	if w.FullOnly && len(w.FullN) > 0 {
		return w.FullN
	}
	return slices.Concat(w.QuickN, w.FullN)
}

// within bounds a count of the quick suite with syncs; one that was asked for stays.
func (w Workload) within(n int, sync bool, s Scale) int {
	if !sync || s.Full || len(s.Counts) > 0 || w.QuickSynced == 0 {
		return n
	}
	return min(n, w.QuickSynced)
}

func (w Workload) modes(s Scale, n int) []bool {
	switch {
	case s.Sync != nil:
		return s.Sync
	case w.Modes != nil:
		return w.Modes(s, slices.Contains(w.FullN, n))
	}
	return []bool{true, false}
}

func (w Workload) vary(p Params, s Scale) []Params {
	if w.Vary == nil {
		return []Params{p}
	}
	return w.Vary(p, s)
}

// unsynced are the modes of workloads that write in batches or measure reads; the
// full suite runs the small counts with syncs too. (With the large ones an engine
// that has no batch would sync for a quarter of an hour, which w1 and durable show.)
func unsynced(s Scale, large bool) []bool {
	if s.Full && !large {
		return []bool{true, false}
	}
	return []bool{false}
}

// madeRecords is the Unfit of workloads that tell from a value which write it is.
func madeRecords(s Scale) string {
	if s.Data != nil {
		return "it tells from each value which write it is"
	}
	return ""
}

// asPublished is the Unfit of workloads whose bytes are those of an article.
func asPublished(s Scale) string {
	if s.Data != nil || s.ValueBytes > 0 || s.KeyBytes > 0 {
		return "its keys and values are those of the article"
	}
	return ""
}
