package main

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	dir := newStore(t, "k", "value", "empty", "", "bin\x00\xff", "\x1b[31m\xff", "-dash", "d")
	cli(t, "get", dir, "k").ok(t, "value")
	cli(t, "get", dir, "empty").ok(t, "")
	cli(t, "get", dir, "--", "-dash").ok(t, "d")
	cli(t, "get", "--hex", dir, "62696e00ff").ok(t, "1b5b33316dff\n")
	cli(t, "get", "-e", dir, `bin\x00\xff`).ok(t, `\x1b[31m\xff`+"\n")
	cli(t, "get", "--escaped", dir, "empty").ok(t, "\n")
	cli(t, "get", "--raw", dir, "k").ok(t, "value")
}

// Into a pipe get writes the bytes of the value, nothing else.
func TestGetBinaryIntoPipe(t *testing.T) {
	value := strings.Repeat("\x00\x1b\xff\n", 100_000)
	cli(t, "get", newStore(t, "k", value), "k").ok(t, value)
}

// Pieces that are escaped one by one must not tear characters apart.
func TestGetEscapedLargeValue(t *testing.T) {
	value := "a" + strings.Repeat("\u00e4\u20ac\U0001f600", 20_000)
	dir := newStore(t, "k", value, "bad", strings.Repeat("\xbf", 50_000))
	cli(t, "get", "-e", dir, "k").ok(t, value+"\n")
	cli(t, "get", "-e", dir, "bad").ok(t, strings.Repeat(`\xbf`, 50_000)+"\n")
}

func TestGetJSON(t *testing.T) {
	dir := newStore(t, "k", "<v> \u009b31m\U000e0001", "empty", "", "\xff", "\x80")
	r := cli(t, "get", "--json", dir, "k")
	r.ok(t, `{"key":"k","value":"<v> \u009b31m\udb40\udc01"}`+"\n")
	if got := parse[pair](t, r.out); *got.Value != "<v> \u009b31m\U000e0001" {
		t.Errorf("value %q", *got.Value)
	}
	cli(t, "get", "--json", dir, "empty").ok(t, `{"key":"empty","value":""}`+"\n")
	cli(t, "get", "--json", "--hex", dir, "ff").ok(t, `{"key_base64":"/w==","value_base64":"`+
		base64.StdEncoding.EncodeToString([]byte("\x80"))+"\"}\n")
}

func TestGetNotFound(t *testing.T) {
	dir := newStore(t, "k", "v")
	cli(t, "get", dir, "no\x1bne").fails(t, exitNotFound, "cairn get: ", `"no\x1bne"`, "not found", dir)
	r := cli(t, "get", dir, "none", "--json")
	r.fails(t, exitNotFound)
	if f := failureOf(t, r); f.Code != "not_found" || f.Exit != 1 || f.Command != "cairn get" || *f.Key != "none" {
		t.Errorf("%+v", f)
	}
}

// The message about a long key does not fill the screen.
func TestGetLongKey(t *testing.T) {
	dir := newStore(t, "k", "v")
	r := cli(t, "get", dir, strings.Repeat("x", 60_000))
	r.fails(t, exitNotFound, `x"... not found`)
	if len(r.err) > 500+len(dir) {
		t.Errorf("message of %d bytes", len(r.err))
	}
	cli(t, "get", dir, strings.Repeat("x", 70_000)).fails(t, exitUsage, "key too large")
}
