package main

import (
	"os"
	"strings"
	"testing"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What README.md says of building works: go install takes no module that has a
// replace directive, and the target of make is there.
func TestReadmeSaysHowToBuild(t *testing.T) {
	readme := readText(t, "README.md")
	if strings.Contains(readText(t, "go.mod"), "\nreplace ") && strings.Contains(readme, "go install") {
		t.Error("README.md tells to go install a module that replaces another")
	}
	for _, line := range []string{"make .bin/cairn\n", "cd cmd/cairn && go build -o ../../.bin/cairn ."} {
		if !strings.Contains(readme, line) {
			t.Errorf("README.md lacks %q", line)
		}
	}
	if !strings.Contains(readText(t, "../../Makefile"), "\n.bin/cairn: ") {
		t.Error("no target .bin/cairn")
	}
	if !strings.Contains(readText(t, "../../.gitignore"), ".bin/\n") {
		t.Error(".bin is not ignored")
	}
}

// The JSON that README.md shows has the fields that are printed.
func TestReadmeNamesFields(t *testing.T) {
	readme := readText(t, "README.md")
	for _, field := range []string{"log_bytes", "recovery", "dropped_bytes", "dropped_segment", "dropped_offset", "dropped_tail"} {
		if !strings.Contains(readme, field) {
			t.Errorf("README.md lacks %s", field)
		}
	}
}

// What README.md says of bytes that are not UTF-8 in the message of a document is so.
func TestReadmeSaysWhatBecomesOfBytesInMessages(t *testing.T) {
	for _, how := range []string{"`\\xff`", "U+FFFD"} {
		if !strings.Contains(readText(t, "README.md"), how) {
			t.Errorf("README.md lacks %s", how)
		}
	}
	dir := newStore(t, "a", "1")
	for want, args := range map[string][]string{
		`key "k\xff" not found in ` + dir:         {"get", dir, "k\xff"},
		`--from "z\xff" is behind --to "a\xff": `: {"scan", dir, "--from", "z\xff", "--to", "a\xff"},
		"unknown flag --z\ufffd":                  {"scan", dir, "--z\xff"},
	} {
		if f := failureOf(t, cli(t, append(args, "--json")...)); !strings.HasPrefix(f.Message, want) {
			t.Errorf("%q, want %q", f.Message, want)
		}
	}
}
