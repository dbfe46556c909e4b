package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/cairndb/cairn/bench/internal/report/compare"
)

// With -fail-above only.
var (
	errMoved   = errors.New("more than 10 % of the cells moved")
	errNoCells = errors.New("no cell is in both runs: -fail-above has nothing to judge")
)

// defaultLimit is what runs on one machine should stay within, in per cent.
const defaultLimit = 20

func compareCommand() *cobra.Command {
	var format string
	var failAbove float64
	cmd := &cobra.Command{
		Use:   "compare a b",
		Short: "compare two saved runs, figure by figure",
		Args:  fileArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := compareFiles(args[0], args[1], failAbove)
			if err != nil {
				return usageError{err}
			}
			if err := showComparison(cmd, c, format); err != nil {
				return err
			}
			return judge(c, failAbove)
		},
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case format != "text" && format != "json":
				return usageError{fmt.Errorf("-format %q: want text or json", format)}
			case !(failAbove >= 0) || math.IsInf(failAbove, 0): // nothing is above what is no number
				return usageError{fmt.Errorf("-fail-above %g", failAbove)}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "of standard output: text or json")
	cmd.Flags().Float64Var(&failAbove, "fail-above", 0, "exit code 1 if more than 10 % of the cells moved by more per cent than this (default: never)")
	return cmd
}

func judge(c *compare.Comparison, failAbove float64) error {
	switch {
	case failAbove == 0:
		return nil
	case len(c.Standings) == 0:
		return errNoCells
	case c.TooManyMoved():
		return fmt.Errorf("%w by more than %g %%", errMoved, failAbove)
	}
	return nil
}

func compareFiles(a, b string, failAbove float64) (*compare.Comparison, error) {
	first, err := readRun(a)
	if err != nil {
		return nil, err
	}
	second, err := readRun(b)
	if err != nil {
		return nil, err
	}
	limit := failAbove
	if limit == 0 {
		limit = defaultLimit
	}
	c := compare.Of(first, second, limit)
	c.A.Name, c.B.Name = a, b
	return c, nil
}

func showComparison(cmd *cobra.Command, c *compare.Comparison, format string) error {
	if format == "text" {
		return c.Text(cmd.OutOrStdout())
	}
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetIndent("", " ")
	return enc.Encode(c)
}
