package main

import (
	"context"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// scan is the verb's flags.
type scan struct {
	app     *app
	bounds  bounds
	reverse bool
	keys    bool
	limit   uint64
}

func newScan(a *app) *cobra.Command {
	s := &scan{app: a}
	cmd := &cobra.Command{
		Use:   "scan STORE",
		Short: "Print keys and values in order",
		Long: `Print the keys of a range and their values in the order of their bytes, one pair
per line, a tab between. Both are escaped, on a terminal or not, so that lines can
be taken apart again; with --raw they are not, and may not. It is a snapshot, and
is printed as it is read.

JSON, one line per pair: {"key": ..., "value": ...}; key_base64, value_base64 for
what is not UTF-8; with --keys without a value.`,
		Example: "  cairn scan ./store --prefix user/\n  cairn scan ./store --from a --to b --reverse --limit 10\n" +
			"  cairn scan ./store --json | jq -r .value",
		Args: arguments(1, 1),
		RunE: a.verb(s.run),
	}
	s.bounds.add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&s.reverse, "reverse", "r", false, "descending order")
	f.BoolVarP(&s.keys, "keys", "k", false, "keys only; values are not read")
	f.Uint64VarP(&s.limit, "limit", "n", 0, "stop after `N` (0: no limit)")
	return cmd
}

func (s *scan) run(ctx context.Context, _ *cobra.Command, args []string) error {
	r, err := s.bounds.rangeOf(s.app)
	if err != nil {
		return err
	}
	return s.app.read(ctx, args[0], func(db *cairn.DB) error {
		return db.View(func(tx *cairn.Tx) error {
			it := tx.Iter(r)
			defer it.Close()
			if err := s.walk(ctx, it); err != nil {
				return err
			}
			return it.Err()
		})
	})
}

func (s *scan) walk(ctx context.Context, it *cairn.Iterator) error {
	first, next := it.First, it.Next
	if s.reverse {
		first, next = it.Last, it.Prev
	}
	printed := uint64(0)
	for ok := first(); ok; ok = next() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.print(it); err != nil {
			return err
		}
		if printed++; printed == s.limit {
			break
		}
	}
	return nil
}

func (s *scan) print(it *cairn.Iterator) error {
	var value []byte
	if !s.keys {
		var err error
		if value, err = it.Value(); err != nil {
			return err
		}
	}
	if s.app.json {
		return s.app.out.pair(it.Key(), value, !s.keys)
	}
	out, f := s.app.out, s.app.form(formEscaped)
	err := out.bytes(it.Key(), f)
	if err == nil && !s.keys {
		if err = out.write([]byte("\t")); err == nil {
			err = out.bytes(value, f)
		}
	}
	if err != nil {
		return err
	}
	return out.endLine()
}
