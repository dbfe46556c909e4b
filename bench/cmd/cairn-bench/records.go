package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/cairndb/cairn/bench/internal/data"
	"github.com/cairndb/cairn/bench/internal/harness"
	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/workload"
)

// records reads the user's file, if there is one, and says what is in it. Children
// read it again, wherever they run, so its path is made absolute.
func (f *flags) records(w io.Writer) (*data.Records, error) {
	if err := f.check(); err != nil || f.data.Path == "" {
		return nil, err
	}
	path, err := filepath.Abs(f.data.Path)
	if err != nil {
		return nil, err
	}
	f.data.Path = path
	records, err := f.data.Read()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "cairn-bench: %d records of %d B on average from %s\n", len(records.Values), records.MeanBytes(), filepath.Base(path))
	for i, bad := range records.Bad {
		if i == 20 {
			fmt.Fprintf(w, "cairn-bench: and %d more left out\n", len(records.Bad)-i)
			break
		}
		fmt.Fprintf(w, "cairn-bench: left out: line %d: %s\n", bad.Line, report.Printable(bad.Why))
	}
	return records, nil
}

// scale is what the flags ask of every workload.
func (f *flags) scale(records *data.Records) workload.Scale {
	s := workload.Scale{
		Full: f.full, Counts: f.counts, ValueBytes: f.values, KeyBytes: f.keys, Theta: f.zipf, Rate: f.rate, Seconds: f.seconds,
		Sync: syncModes[f.sync], Seed: f.seed,
	}
	if records != nil {
		s.Data, s.ValueBytes, s.OwnKeys = &f.data, records.MeanBytes(), len(records.Keys)
	}
	return s
}

// fitKeys refuses keys too short to differ; some workloads insert more than they
// begin with.
func (f *flags) fitKeys(plan harness.Plan) error {
	for _, t := range plan.Tables {
		if least := data.LeastKeyBytes(2 * t.Params.N); f.keys > 0 && f.keys < least {
			return fmt.Errorf("-keys %d: %d keys take at least %d bytes", f.keys, t.Params.N, least)
		}
	}
	return nil
}
