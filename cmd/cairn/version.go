package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/cairndb/cairn/internal/base"
	"github.com/spf13/cobra"
)

// version is set by releases: -ldflags "-X main.version=v1.2.3".
var version = ""

// versionDocument is the JSON of version.
type versionDocument struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Format   int    `json:"format"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this command and of the format it writes",
		Long: `Print the version of this command, and of the format of the tables and manifests
it writes.

JSON: {"version", "revision", "modified", "format", "go", "os", "arch"}`,
		Args: arguments(0, 0),
		RunE: a.verb(a.version),
	}
}

// version is the verb version, and the flag --version.
func (a *app) version(context.Context, *cobra.Command, []string) error {
	d := newVersionDocument()
	if a.json {
		return a.out.document(d)
	}
	return a.out.write([]byte(d.text() + "\n"))
}

// shownRevision is how much of a revision is shown; versions that Go makes of
// revisions have as much.
const shownRevision = 12

func (d *versionDocument) text() string {
	text := "cairn " + d.Version
	if r := d.Revision[:min(len(d.Revision), shownRevision)]; !strings.Contains(d.Version, r) {
		text += ", revision " + r
		if d.Modified {
			text += " (modified)"
		}
	}
	return fmt.Sprintf("%s, format %d, %s %s/%s", text, d.Format, d.Go, d.OS, d.Arch)
}

func newVersionDocument() *versionDocument {
	d := &versionDocument{Version: version, Format: base.FormatVersion, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && d.Version == "" {
		d.Version = info.Main.Version
	}
	if d.Version == "" {
		d.Version = "(devel)"
	}
	if ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				d.Revision = s.Value
			case "vcs.modified":
				d.Modified = s.Value == "true"
			}
		}
	}
	return d
}
