package main

import (
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	r := cli(t, "version")
	if r.code != 0 || !strings.HasPrefix(r.out, "cairn ") || !strings.Contains(r.out, runtime.Version()) {
		t.Errorf("%+v", r)
	}
	d := parse[versionDocument](t, cli(t, "version", "--json").out)
	if d.Version == "" || d.Format != 1 || d.OS != runtime.GOOS || d.Arch != runtime.GOARCH {
		t.Errorf("%+v", d)
	}
	cli(t, "version", "extra").fails(t, exitUsage)
}
