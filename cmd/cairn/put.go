package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// put is the verb's flags.
type put struct {
	app     *app
	file    string
	create  bool
	durable durability
}

// putResult is the JSON of a put.
type putResult struct {
	record
	Bytes      int    `json:"value_bytes"`
	Durability string `json:"durability"`
}

func newPut(a *app) *cobra.Command {
	p := &put{app: a, durable: durable}
	cmd := &cobra.Command{
		Use:   "put STORE KEY (VALUE | - | --file FILE)",
		Short: "Set the value of a key",
		Long: `Set the value of a key: an argument, the bytes of a file, or, for "-", those of
standard input, all of them as they are. Behind "--" a "-" is a value like others;
--file - is standard input. --hex and --escaped are about arguments only. The store
has to exist, unless --create is given; then it is made if need be, in a directory
that is empty or not there yet, or holds nothing but what a creation that was
interrupted has left.

JSON: {"key": ..., "value_bytes": N, "durability": "durable"|"relaxed"}`,
		Example: "  cairn put --create ./store user/1 Ann\n  gzip -c page.html | cairn put ./store page -\n" +
			"  cairn put ./store photo --file photo.jpg",
		Args: arguments(2, 3),
		RunE: a.verb(p.run),
	}
	f := cmd.Flags()
	f.StringVarP(&p.file, "file", "f", "", "take the value from this `FILE` (-: standard input)")
	f.BoolVar(&p.create, "create", false, "make the store if it does not exist")
	f.Var(&p.durable, "durability", "durable: survives power loss; relaxed: survives the end of the process")
	return cmd
}

func (p *put) run(ctx context.Context, cmd *cobra.Command, args []string) error {
	key, err := p.app.bytes("key", args[1])
	if err != nil {
		return err
	}
	if len(key) == 0 || len(key) > cairn.MaxKeyBytes { // before a value is read, or a store made
		return usagef("key of %d bytes: keys have 1 to %d", len(key), cairn.MaxKeyBytes)
	}
	// The value is there before the store is opened: nobody is locked out while
	// standard input is slow.
	dashes := cmd.Flags().ArgsLenAtDash() // how many arguments stand in front of "--", or -1
	value, err := p.value(ctx, cmd.Flags().Changed("file"), 0 <= dashes && dashes <= 2, args[2:])
	if err != nil {
		return err
	}
	err = p.app.write(ctx, args[0], p.create, p.durable == relaxed, func(db *cairn.DB) error {
		return withKey(db.Put(key, value), args[0], key)
	})
	if err != nil || !p.app.json {
		return err
	}
	r := putResult{Bytes: len(value), Durability: string(p.durable)}
	r.Key, r.KeyBase64 = jsonBytes(key)
	return p.app.out.done(&r)
}

// value returns what is to be stored. One behind "--" is taken as it is, also if it is a dash.
func (p *put) value(ctx context.Context, fromFile, asItIs bool, args []string) ([]byte, error) {
	switch {
	case fromFile == (len(args) == 1):
		return nil, usagef("give the value as an argument or with --file, one of the two")
	case fromFile && p.file == "":
		return nil, usagef("--file is empty; write --file FILE, or --file - for standard input")
	case fromFile && p.file != "-":
		return readFile(ctx, p.file)
	case fromFile || args[0] == "-" && !asItIs:
		return readValue(ctx, p.app.in, "standard input")
	}
	return p.app.bytes("value", args[0])
}

func readFile(ctx context.Context, name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > cairn.MaxValueBytes {
		return nil, valueTooLarge(name)
	}
	f, err := await(ctx, func() (*os.File, error) { return os.Open(name) }) // of a pipe that nobody writes it waits
	if err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	defer f.Close()
	return readValue(ctx, f, name)
}

func readValue(ctx context.Context, r io.Reader, name string) ([]byte, error) {
	value, err := readAll(ctx, r, cairn.MaxValueBytes)
	if err != nil {
		return nil, fmt.Errorf("read value from %s: %w", name, err)
	}
	if len(value) > cairn.MaxValueBytes {
		return nil, valueTooLarge(name)
	}
	return value, nil
}

func valueTooLarge(name string) error {
	return fmt.Errorf("value from %s: %w: more than %d bytes", name, cairn.ErrValueTooLarge, int64(cairn.MaxValueBytes))
}

// durability is the flag --durability.
type durability string

const (
	durable durability = "durable"
	relaxed durability = "relaxed"
)

// String returns the flag's value.
func (d *durability) String() string { return string(*d) }

// Set takes one of the two words.
func (d *durability) Set(s string) error {
	switch v := durability(s); v {
	case durable, relaxed:
		*d = v
		return nil
	}
	return fmt.Errorf("write %s or %s", durable, relaxed)
}

// Type is what help calls the value.
func (d *durability) Type() string { return "durable|relaxed" }
