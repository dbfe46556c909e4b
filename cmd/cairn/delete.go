package main

import (
	"context"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// remove is the flags of the verb delete.
type remove struct {
	app       *app
	bounds    bounds
	all       bool
	mustExist bool
	durable   durability
}

// deletedKey is the JSON of a delete of one key.
type deletedKey struct {
	record
	Existed bool `json:"existed"`
}

// deletedRange is the JSON of a delete of a range; a bound that is absent is open.
type deletedRange struct {
	From       *string `json:"from,omitempty"`
	FromBase64 []byte  `json:"from_base64,omitempty"`
	To         *string `json:"to,omitempty"`
	ToBase64   []byte  `json:"to_base64,omitempty"`
}

func newDelete(a *app) *cobra.Command {
	d := &remove{app: a, durable: durable}
	cmd := &cobra.Command{
		Use:   "delete STORE (KEY | --from KEY | --to KEY | --prefix BYTES | --all)",
		Short: "Delete a key or a range of keys",
		Long: `Delete a key, or all keys of a range. To delete a key that is not there is no
error, unless --must-exist is given. What a range costs does not depend on how
many keys are in it.

JSON: {"key": ..., "existed": true|false}; of a range {"from": ..., "to": ...},
where a bound that is absent is open.`,
		Example: "  cairn delete ./store user/1\n  cairn delete ./store --prefix session/\n  cairn delete ./store --from 2024 --to 2025",
		Args:    arguments(1, 2),
		RunE:    a.verb(d.run),
	}
	d.bounds.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&d.all, "all", false, "delete every key")
	f.BoolVar(&d.mustExist, "must-exist", false, "fail if the key is not there")
	f.Var(&d.durable, "durability", "durable: survives power loss; relaxed: survives the end of the process")
	return cmd
}

func (d *remove) run(ctx context.Context, _ *cobra.Command, args []string) error {
	ranged := d.all || d.bounds.given()
	switch {
	case ranged == (len(args) == 2):
		return usagef("give a key or a range (--from, --to, --prefix, --all), one of the two")
	case ranged && d.mustExist:
		return usagef("--must-exist is for a single key")
	case ranged:
		return d.byRange(ctx, args[0])
	}
	return d.byKey(ctx, args[0], args[1])
}

func (d *remove) byKey(ctx context.Context, dir, arg string) error {
	key, err := d.app.bytes("key", arg)
	if err != nil {
		return err
	}
	var existed bool
	err = d.app.write(ctx, dir, false, d.durable == relaxed, func(db *cairn.DB) error {
		return withKey(db.Update(func(tx *cairn.Tx) (err error) {
			existed, err = tx.Has(key)
			switch {
			case err != nil:
				return err
			case existed:
				return tx.Delete(key)
			case d.mustExist:
				return cairn.ErrNotFound
			}
			return nil
		}), dir, key)
	})
	if err != nil || !d.app.json {
		return err
	}
	r := deletedKey{Existed: existed}
	r.Key, r.KeyBase64 = jsonBytes(key)
	return d.app.out.done(&r)
}

func (d *remove) byRange(ctx context.Context, dir string) error {
	r, err := d.bounds.rangeOf(d.app)
	if err != nil {
		return err
	}
	err = d.app.write(ctx, dir, false, d.durable == relaxed, func(db *cairn.DB) error {
		return db.Update(func(tx *cairn.Tx) error { return tx.DeleteRange(r) })
	})
	if err != nil || !d.app.json {
		return err
	}
	var doc deletedRange
	if r.Low != nil {
		doc.From, doc.FromBase64 = jsonBytes(r.Low)
	}
	if r.High != nil {
		doc.To, doc.ToBase64 = jsonBytes(r.High)
	}
	return d.app.out.done(&doc)
}
