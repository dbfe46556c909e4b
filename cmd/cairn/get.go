package main

import (
	"context"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

func newGet(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get STORE KEY",
		Short: "Print the value of a key",
		Long: `Print the value of a key. On a terminal it is escaped, and a newline follows; a
pipe or a file gets exactly the bytes of the value.

JSON: {"key": ..., "value": ...}; key_base64, value_base64 for what is not UTF-8.`,
		Example: "  cairn get ./store user/1\n  cairn get ./store photo > photo.jpg\n  cairn get --hex ./store 00ff",
		Args:    arguments(2, 2),
		RunE: a.verb(func(ctx context.Context, _ *cobra.Command, args []string) error {
			key, err := a.bytes("key", args[1])
			if err != nil {
				return err
			}
			return a.read(ctx, args[0], func(db *cairn.DB) error {
				return withKey(a.get(db, key), args[0], key)
			})
		}),
	}
}

func (a *app) get(db *cairn.DB, key []byte) error {
	return db.View(func(tx *cairn.Tx) error {
		value, err := tx.Get(key)
		if err != nil {
			return err
		}
		return a.printValue(key, value)
	})
}

func (a *app) printValue(key, value []byte) error {
	if a.json {
		return a.out.pair(key, value, true)
	}
	f := formRaw
	if a.out.terminal {
		f = formEscaped
	}
	f = a.form(f)
	if err := a.out.bytes(value, f); err != nil || f == formRaw {
		return err
	}
	return a.out.endLine()
}
