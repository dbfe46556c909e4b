package mutants

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"
)

const root = "../.."

func TestSites(t *testing.T) {
	sites, err := Sites(root)
	if err != nil {
		t.Fatal(err)
	}
	n := map[Kind]int{}
	for _, s := range sites {
		n[s.Kind]++
		t.Logf("%-15s %-35s %-20s %s", s.Kind, s.Name(), s.Func, s.Text)
	}
	for kind, least := range map[Kind]int{Sync: 6, SyncDir: 4, Checksum: 5, Identity: 8, Mark: 2} {
		if n[kind] < least {
			t.Errorf("%d sites of kind %s, expected at least %d: does the finder still know how they look?", n[kind], kind, least)
		}
	}
}

func TestMutate(t *testing.T) {
	dir := t.TempDir()
	src := "package p\n\nfunc f(s interface{ Sync() error }) error {\n\tif err := s.Sync(); err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	sites, err := Sites(dir)
	if err != nil || len(sites) != 1 {
		t.Fatal(sites, err)
	}
	got, err := sites[0].Mutate(dir)
	want := "package p\n\nfunc f(s interface{ Sync() error }) error {\n\tif err := func() error { _ = s; return nil }(); err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
}

var (
	on       = flag.Bool("mutants.on", false, "run the tests on every mutant: takes long")
	run      = flag.String("mutants.run", "", "only sites whose \"kind file:line function\" matches")
	table    = flag.String("mutants.table", "", "file to write the table to")
	baseline = flag.Bool("mutants.baseline", true, "first check that the tests pass without a mutation")
)

// TestMutants tries all mutants, if asked to.
func TestMutants(t *testing.T) {
	if !*on {
		t.Skip("only with -mutants.on")
	}
	r, err := Copy(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sites, err := Sites(r.Root)
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(*run)
	sites = slices.DeleteFunc(sites, func(s *Site) bool {
		return !wanted.MatchString(fmt.Sprintf("%s %s %s", s.Kind, s.Name(), s.Func))
	})
	if *baseline {
		if err := r.Baseline(t.Context(), sites); err != nil {
			t.Fatal(err)
		}
	}
	var verdicts []*Verdict
	for _, s := range sites {
		v, err := r.Try(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, v)
		judge(t, v)
		if *table != "" {
			if err := os.WriteFile(*table, []byte(Table(verdicts)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func judge(t *testing.T, v *Verdict) {
	what := fmt.Sprintf("%s %s in %s: %s", v.Site.Kind, v.Site.Name(), v.Site.Func, v.Site.Text)
	switch {
	case v.Broken != "":
		t.Errorf("BROKEN %s\n%s", what, v.Broken)
	case v.Killer == "":
		t.Errorf("SURVIVED %s (%v)", what, v.Took.Round(time.Second))
	default:
		t.Logf("killed %s by %s (%v)", what, v.Killer, v.Took.Round(time.Second))
	}
}
