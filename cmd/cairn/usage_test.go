package main

import (
	"strings"
	"testing"
)

// What is wrong with a command line is said in words of the command line, and what
// to write instead; nothing of how it is parsed shows.
func TestUsageWords(t *testing.T) {
	dir := newStore(t, "a", "1")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"scan", dir, "--limit", "-1"}, `--limit "-1": write a whole number from 0 to`},
		{[]string{"scan", dir, "-n", "x"}, `--limit "x": write a whole number from 0 to`},
		{[]string{"scan", dir, "--limit", "99999999999999999999"}, `write a whole number from 0 to 18446744073709551615`},
		{[]string{"scan", dir, "--limit"}, `--limit has no value; write --limit N`},
		{[]string{"put", dir, "a", "-f"}, `--file has no value; write --file FILE`},
		{[]string{"get", dir, "a", "--wait", "5"}, `--wait "5": write a number with its unit, like 500ms, 10s or 2m`},
		{[]string{"get", dir, "a", "--wait", "9999999h"}, `--wait "9999999h": write a number with its unit, like 500ms, 10s or 2m, up to 2562047h`},
		{[]string{"get", dir, "a", "--raw=maybe"}, `--raw "maybe": write true or false, or the flag alone`},
		{[]string{"put", dir, "a", "b", "--durability", "no"}, `--durability "no": write durable or relaxed`},
		{[]string{"get", dir}, "an argument is missing; write: cairn get STORE KEY"},
		{[]string{"get", "", "key"}, "STORE is empty; write: cairn get STORE KEY"},
		{[]string{"put"}, "an argument is missing; write: cairn put STORE KEY (VALUE"},
		{[]string{"scan", dir, "extra", "more"}, `too many arguments, from "extra" on; write: cairn scan STORE`},
		{[]string{"put", dir, "a", "--file", ""}, "--file is empty; write --file FILE, or --file - for standard input"},
		{[]string{"exit-codes", "extra"}, `too many arguments, from "extra" on; write: cairn exit-codes`},
		{[]string{"version", "extra"}, `too many arguments, from "extra" on; write: cairn version`},
		{[]string{"scan", dir, "--raw", "--hex"}, "--hex and --raw exclude each other; give one of them"},
		{[]string{"scan", dir, "--raw", "--hex", "-e"}, "--hex and --escaped and --raw exclude each other"},
		{[]string{"scan", dir, "--raw", "--json"}, "--json and --raw exclude each other"},
		{[]string{"delete", dir, "--all", "--to", "b"}, "--all and --to exclude each other"},
		{[]string{"delete", dir, "--prefix", "a", "--prefix", "b"}, `--prefix "b": given twice; give it once`},
		{[]string{"scan", dir, "-n", "1", "--limit", "2"}, `--limit "2": given twice; give it once`},
		{[]string{"put", dir, "a", "--file", "x", "-f", "y"}, `--file "y": given twice; give it once`},
		{[]string{"put", dir, "a", "v", "--durability", "durable", "--durability", "relaxed"}, `--durability "relaxed": given twice; give it once`},
		{[]string{"--wait", "1s", "get", dir, "a", "--wait", "2s"}, `--wait "2s": given twice; give it once`},
		{[]string{"get", dir, "a", "--hex"}, `key "a": not hexadecimal: write two digits`},
		{[]string{"get", dir, "xy", "--hex"}, `key "xy": not hexadecimal: write two digits`},
		{[]string{"get", dir, "-xe"}, "unknown flag -x in -xe; a key or value that begins with a dash goes behind --: cairn get STORE -- -key"},
		{[]string{"scan", dir, "--nope"}, "unknown flag --nope\n"},
		{[]string{"scan", dir, "---n"}, "---n is not a flag"},
		{[]string{"gte", dir}, `unknown command "gte"; is it get?`},
		{[]string{"nothing", dir}, `unknown command "nothing"; cairn --help lists the commands`},
		{[]string{"help", "nonsense"}, `there is no help about "nonsense"; cairn --help lists the commands`},
		{[]string{"help", "get", "more"}, `there is no help about "get more"`},
		{[]string{"completion", "nonsense"}, `unknown command "nonsense"`},
		{[]string{"completion", "bash", "more"}, `too many arguments, from "more" on; write: cairn completion bash`},
		{[]string{"get", dir, "a", "--wait", "-5s"}, "--wait -5s: a wait cannot be negative"},
		{[]string{"verify", dir, "--wait=-1ns"}, "--wait -1ns: a wait cannot be negative"},
	} {
		r := cli(t, c.args...)
		r.fails(t, exitUsage, c.want)
		for _, raw := range []string{"strconv", "parsing", "arg(s)", "group [", "time:", "encoding/", "shorthand", "invalid argument"} {
			if strings.Contains(r.err, raw) {
				t.Errorf("%q: %q", c.args, r.err)
			}
		}
		j := cli(t, append([]string{"--json=true"}, c.args...)...)
		j.fails(t, exitUsage)
		if f := failureOf(t, j); f.Code != "usage" || f.Exit != exitUsage || f.Message == "" {
			t.Errorf("%q: %+v", c.args, f)
		}
	}
}

// With --json, standard error has documents only.
func TestJSONWithoutCommand(t *testing.T) {
	r := cli(t, "--json")
	r.fails(t, exitUsage)
	if f := failureOf(t, r); f.Code != "usage" || f.Exit != exitUsage || f.Command != "cairn" || !strings.Contains(f.Message, "no command") {
		t.Errorf("%+v", f)
	}
}

// However --json is written, errors of flags that do not parse are as it says.
func TestJSONOfFlagErrors(t *testing.T) {
	for flags, want := range map[string]bool{
		"--json": true, "--json=true": true, "--json=1": true, "--json=t": true, "--json=TRUE": true, "--json=false --json": true,
		"--json=false": false, "--json=0": false, "--json --json=F": false, "--json=yes": false, "-- --json": false,
	} {
		r := cli(t, append([]string{"get", "--nope"}, strings.Fields(flags)...)...)
		r.fails(t, exitUsage, "--nope")
		if strings.HasPrefix(r.err, "{") != want {
			t.Errorf("%s: %q", flags, r.err)
		}
	}
}

// --json is off unless it is given, also where its help is printed with it.
func TestJSONFlag(t *testing.T) {
	for _, args := range [][]string{{"--json", "--help"}, {"get", "--json", "--help"}, {"help", "get", "--json"}} {
		if r := cli(t, args...); r.code != 0 || strings.Contains(r.out, "default true") || !strings.Contains(r.out, "--json ") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	dir := newStore(t, "--json", "1")
	cli(t, "scan", dir, "--prefix", "--json").ok(t, "--json\t1\n") // the word is the prefix
	cli(t, "scan", dir, "--json", "--json=false").ok(t, "--json\t1\n")
}

func TestHelpOfCommand(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "help"}, {"help", "get"}, {"help", "completion", "bash"}, {"completion"}} {
		if r := cli(t, args...); r.code != 0 || r.err != "" || !strings.Contains(r.out, "Usage:") || !strings.Contains(r.out, "-h, --help") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}
