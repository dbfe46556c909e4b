package main

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is an error of the command line, not of the store.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// arguments wants least to most arguments, and shows how to write them otherwise.
func arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		write := strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
		switch {
		case len(args) < least:
			return usagef("an argument is missing; write: %s", write)
		case len(args) > most:
			return usagef("too many arguments, from %q on; write: %s", args[most], write)
		case len(args) > 0 && args[0] == "":
			return usagef("STORE is empty; write: %s", write)
		}
		return nil
	}
}

// commandOnly refuses a word that is no command.
func commandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q; is it %s?", args[0], strings.Join(near, " or "))
	}
	return usagef("unknown command %q; %s --help lists the commands", args[0], cmd.CommandPath())
}

// flagError says in the command's own words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	var malformed *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &invalid):
		return usagef("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), wanted(invalid))
	case errors.As(err, &missing):
		value, _ := pflag.UnquoteUsage(missing.GetFlag())
		return usagef("--%s has no value; write --%[1]s %s", missing.GetFlag().Name, value)
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if all := unknown.GetSpecifiedShortnames(); all != "" {
			name = "-" + unknown.GetSpecifiedName()
			if all != unknown.GetSpecifiedName() {
				name += fmt.Sprintf(" in -%s", all)
			}
		}
		return usagef("unknown flag %s%s", name, dashHint(cmd))
	case errors.As(err, &malformed):
		return usagef("%s is not a flag%s", malformed.GetSpecifiedFlag(), dashHint(cmd))
	}
	return &usageError{err}
}

// dashHint tells verbs that take keys how one that begins with a dash is written.
func dashHint(cmd *cobra.Command) string {
	if !strings.Contains(cmd.Use, "KEY") {
		return ""
	}
	return fmt.Sprintf("; a key or value that begins with a dash goes behind --: %s STORE -- -key", cmd.CommandPath())
}

// once is the value of a flag that is refused if it is given twice: the first would be passed over without a word.
type once struct {
	pflag.Value
	given bool
}

var errTwice = errors.New("given twice; give it once")

// Set takes the flag's value, once.
func (o *once) Set(s string) error {
	if o.given {
		return errTwice
	}
	o.given = true
	return o.Value.Set(s)
}

// takeOnce makes flags such, but for those that are on or off.
func takeOnce(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() != "bool" {
			f.Value = &once{Value: f.Value}
		}
	})
}

// wanted says what to write as the value of a flag.
func wanted(e *pflag.InvalidValueError) string {
	switch kind := e.GetFlag().Value.Type(); {
	case errors.Is(e, errTwice):
	case kind == "uint64":
		return fmt.Sprintf("write a whole number from 0 to %d", uint64(math.MaxUint64))
	case kind == "duration":
		return "write a number with its unit, like 500ms, 10s or 2m, up to 2562047h"
	case kind == "bool":
		return "write true or false, or the flag alone"
	}
	return e.Unwrap().Error()
}

// exclusive lists flags of which a command line may have one.
var exclusive = [][]string{
	{"hex", "escaped", "raw"}, {"json", "raw"},
	{"all", "from"}, {"all", "to"}, {"all", "prefix"}, {"all", "must-exist"},
}

// checkFlags refuses what the flags do not refuse one by one.
func (a *app) checkFlags(cmd *cobra.Command, _ []string) error {
	a.json = a.json && cmd.Flags().Changed("json") // the word may have been another flag's value
	for _, group := range exclusive {
		var given []string
		for _, name := range group {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return usagef("%s exclude each other; give one of them", strings.Join(given, " and "))
		}
	}
	if a.wait < 0 {
		return usagef("--wait %s: a wait cannot be negative; write --wait 10s, or leave it out not to wait", a.wait)
	}
	return nil
}
