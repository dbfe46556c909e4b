package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cairndb/cairn"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{errReaderGone, 0},
		{fmt.Errorf("x: %w", cairn.ErrNotFound), 1},
		{&keyError{err: cairn.ErrNotFound}, 1},
		{usagef("x"), 2},
		{cairn.ErrEmptyKey, 2},
		{&keyError{err: cairn.ErrKeyTooLarge}, 2},
		{cairn.ErrValueTooLarge, 2},
		{&cairn.LockedError{}, 3},
		{fmt.Errorf("x: %w", &cairn.CorruptionError{}), 4},
		{&damageError{1, errors.Join(io.ErrUnexpectedEOF, &cairn.CorruptionError{})}, 4},
		{&damageError{1, io.ErrUnexpectedEOF}, 5},
		{errors.Join(&cairn.CorruptionError{}, cairn.ErrNotFound), 4},
		{&outputError{io.ErrShortWrite}, 5},
		{cairn.ErrNoSpace, 5},
		{cairn.ErrFormatTooNew, 5},
		{os.ErrPermission, 5},
		{errInterrupted, 130},
		{errInterruptedAfter, 130},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

func TestHelpExitCodes(t *testing.T) {
	r := cli(t, "help", "exit-codes")
	if r.code != 0 || !strings.Contains(r.out, exitCodesText) {
		t.Errorf("%+v", r)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, name := range codeNames {
		if !strings.Contains(exitCodesText, fmt.Sprintf("\n  %d", code)) {
			t.Errorf("code %d is not in the help", code)
		}
		if want := fmt.Sprintf("| %d | `%s` |", code, name); !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
}

// The one verb that prints no document says so: it is help.
func TestExitCodesAreText(t *testing.T) {
	r := cli(t, "--json", "exit-codes")
	if r.code != 0 || !strings.Contains(r.out, exitCodesText) {
		t.Errorf("%+v", r)
	}
	if help := cli(t, "--help").out; !strings.Contains(help, "help and exit-codes are text all the same") {
		t.Errorf("%s", help)
	}
}

func TestUsage(t *testing.T) {
	cli(t, "frobnicate").fails(t, exitUsage, "cairn: ", `"frobnicate"`)
	cli(t).fails(t, exitUsage, "no command", "Usage:")
	cli(t, "get", "--nope").fails(t, exitUsage, "cairn get: ", "--nope", "cairn get --help")
	cli(t, "get", "--wait", "soon", "s", "k").fails(t, exitUsage, "soon")
	f := failureOf(t, cli(t, "get", "--nope", "--json"))
	if f.Code != "usage" || f.Exit != exitUsage {
		t.Errorf("%+v", f)
	}
	// Behind "--" it is a key.
	if r := cli(t, "get", "none", "--", "--json"); r.code != exitEnvironment || strings.HasPrefix(r.err, "{") {
		t.Errorf("%+v", r)
	}
}

// Every verb documents its JSON and has an example or takes no argument.
func TestHelp(t *testing.T) {
	for _, verb := range strings.Fields("get put delete scan stats verify version") {
		r := cli(t, verb, "--help")
		if r.code != 0 || r.err != "" || !strings.Contains(r.out, "JSON") {
			t.Errorf("%s: %+v", verb, r)
		}
		if verb != "version" && !strings.Contains(r.out, "Examples:\n  cairn "+verb) {
			t.Errorf("%s: no example", verb)
		}
	}
}
