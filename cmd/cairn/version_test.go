package main

import (
	"fmt"
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
	for _, json := range []bool{false, true} {
		if flag, verb := cli(t, "--version", fmt.Sprintf("--json=%v", json)), cli(t, "version", fmt.Sprintf("--json=%v", json)); flag != verb || flag.code != 0 {
			t.Errorf("%+v, %+v", flag, verb)
		}
	}
	cli(t, "--version", "extra").fails(t, exitUsage)
	cli(t, "version", "extra").fails(t, exitUsage)
}

// A build without a version is told by its revision.
func TestVersionText(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		d    versionDocument
		want string
	}{
		{versionDocument{Version: "v1.2.3"}, "cairn v1.2.3, format 1, "},
		{versionDocument{Version: "(devel)", Revision: revision}, "cairn (devel), revision 0123456789ab, format 1, "},
		{versionDocument{Version: "(devel)", Revision: revision, Modified: true}, "cairn (devel), revision 0123456789ab (modified), format 1, "},
		{versionDocument{Version: "v0.0.0-20260102030405-0123456789ab+dirty", Revision: revision, Modified: true},
			"cairn v0.0.0-20260102030405-0123456789ab+dirty, format 1, "},
	} {
		c.d.Format, c.d.Go, c.d.OS, c.d.Arch = 1, "go1.26", "plan9", "mips"
		if got := c.d.text(); got != c.want+"go1.26 plan9/mips" {
			t.Errorf("%s", got)
		}
	}
}
