package main

import (
	"bytes"

	"github.com/cairndb/cairn"
	"github.com/spf13/cobra"
)

// bounds are the flags that choose a range of keys.
type bounds struct {
	from, to, prefix string
	flags            interface{ Changed(string) bool }
}

func (b *bounds) add(cmd *cobra.Command) {
	f := cmd.Flags()
	b.flags = f
	f.StringVar(&b.from, "from", "", "first `KEY` (included)")
	f.StringVar(&b.to, "to", "", "`KEY` at which the range ends (not included)")
	f.StringVar(&b.prefix, "prefix", "", "keys that begin with these `BYTES`; narrows --from and --to")
}

// given reports whether any of the flags was.
func (b *bounds) given() bool {
	return b.flags.Changed("from") || b.flags.Changed("to") || b.flags.Changed("prefix")
}

// rangeOf returns the range the flags choose. nil bounds are open.
func (b *bounds) rangeOf(a *app) (r cairn.Range, err error) {
	if r.Low, err = b.bound(a, "from", b.from); err != nil {
		return r, err
	}
	if r.High, err = b.bound(a, "to", b.to); err != nil {
		return r, err
	}
	if r.Low != nil && r.High != nil && bytes.Compare(r.Low, r.High) > 0 {
		return r, usagef("--from %q is behind --to %q: no key is between them", b.from, b.to)
	}
	prefix, err := b.bound(a, "prefix", b.prefix)
	if err != nil || prefix == nil {
		return r, err
	}
	return b.within(r, cairn.Prefix(prefix))
}

// within returns the keys of r with the prefix. A bound that leaves none of them is
// refused, as one behind the other is: it was meant for something else.
func (b *bounds) within(r, prefix cairn.Range) (cairn.Range, error) {
	if r.Low != nil && prefix.High != nil && bytes.Compare(r.Low, prefix.High) >= 0 {
		return r, usagef("--from %q is behind all keys with --prefix %q", b.from, b.prefix)
	}
	if r.High != nil && bytes.Compare(r.High, prefix.Low) <= 0 {
		return r, usagef("--to %q ends before all keys with --prefix %q", b.to, b.prefix)
	}
	return narrow(r, prefix), nil
}

// bound parses one flag. An empty word is refused: from a variable that is not set
// it would silently mean everything.
func (b *bounds) bound(a *app, name, arg string) ([]byte, error) {
	if !b.flags.Changed(name) {
		return nil, nil
	}
	if arg == "" {
		return nil, usagef("--%s is empty; leave it out to have no bound", name)
	}
	return a.bytes("--"+name, arg)
}

// narrow returns the keys that are in both ranges.
func narrow(a, b cairn.Range) cairn.Range {
	if bytes.Compare(b.Low, a.Low) > 0 {
		a.Low = b.Low
	}
	if a.High == nil || b.High != nil && bytes.Compare(b.High, a.High) < 0 {
		a.High = b.High
	}
	return a
}
