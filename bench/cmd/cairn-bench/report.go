package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cairndb/cairn/bench/internal/report"
	"github.com/cairndb/cairn/bench/internal/report/html"
	"github.com/cairndb/cairn/bench/internal/result"
)

// formats of a report on standard output.
var formats = map[string]func(io.Writer, *result.Run) error{
	"text":      report.Text,
	"json":      func(w io.Writer, run *result.Run) error { return run.Encode(w) },
	"benchstat": report.Benchstat,
	"markdown":  report.Markdown,
	"html":      html.Write,
}

func reportCommand() *cobra.Command {
	var format, page string
	var workloads, columns []string
	cmd := &cobra.Command{
		Use:   "report run",
		Short: "show a saved run again",
		Args:  fileArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := readRun(args[0])
			if err == nil {
				run, err = run.Part(workloads, columns)
			}
			if err != nil {
				return usageError{err}
			}
			if page != "" {
				if sameFile(args[0], page) {
					return usageError{fmt.Errorf("-html %s is the run that is to be shown", page)}
				}
				if err := writePage(page, run); err != nil {
					return err
				}
			}
			if page != "" && !cmd.Flags().Changed("format") {
				return nil
			}
			return show(cmd.OutOrStdout(), format, run)
		},
		PreRunE: func(*cobra.Command, []string) error { return checkFormat(format) },
	}
	cmd.Flags().StringVar(&format, "format", "text", "of standard output: text, json, benchstat, markdown or html; none if only -html is given")
	cmd.Flags().StringSliceVar(&workloads, "workload", nil, "only these, by parts of their names, as in w1/n=2000/sync=on (default all)")
	cmd.Flags().StringSliceVar(&columns, "column", nil, "only these, by their keys in the JSON, as in put,get (default all)")
	cmd.Flags().StringVar(&page, "html", "", "write the report for browsers to this file")
	return cmd
}

func fileArgs(n int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("want the files of %d runs, as run writes them with -json or -html", n)}
		}
		return nil
	}
}

func checkFormat(format string) error {
	if formats[format] == nil {
		return usageError{fmt.Errorf("-format %q: want text, json, benchstat, markdown or html", format)}
	}
	return nil
}

func show(w io.Writer, format string, run *result.Run) error { return formats[format](w, run) }

// readRun reads a saved run: the file of -json, or the report for browsers, which carries
// the same.
func readRun(name string) (*result.Run, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if raw, ok := html.Data(b); ok {
		b = raw
	} else if bytes.HasPrefix(bytes.TrimSpace(b), []byte("<")) {
		return nil, fmt.Errorf("%s: a report or page that is not whole, or holds no run", name)
	}
	run, err := result.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return run, nil
}

// writePage replaces a file by the report.
func writePage(name string, run *result.Run) error {
	var page bytes.Buffer
	if err := html.Write(&page, run); err != nil {
		return err
	}
	return replace(name, page.Bytes())
}

// special reports whether name is there and no regular file: a pipe, say, or a terminal.
func special(name string) bool {
	info, err := os.Stat(name)
	return err == nil && !info.Mode().IsRegular()
}

// replace gives a file new contents, whole or not at all. What is special is written to.
func replace(name string, contents []byte) error {
	if special(name) {
		return os.WriteFile(name, contents, 0o644)
	}
	made, err := beside(name, contents)
	if err != nil {
		return err
	}
	defer os.Remove(made)
	return os.Rename(made, name)
}

// beside writes a new file in the directory of a name.
func beside(name string, contents []byte) (made string, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".cairn-bench-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
