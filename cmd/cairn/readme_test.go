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
